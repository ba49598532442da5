// Teaching lint: each rule says what to do instead (STYLE, habit 7).
import js from "@eslint/js";
import tseslint from "typescript-eslint";

const PURE = "src/session/core is pure: time, random and I/O come in on the command (DESIGN 3).";
const pureGlobals = ["Date", "process", "fetch", "setTimeout", "setInterval", "setImmediate", "console", "performance", "crypto"];

export default tseslint.config(
  { ignores: ["dist/**", "node_modules/**", ".docket/**", "coverage/**", "web/dist/**"] },
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: { allowDefaultProject: ["eslint.config.js", ".dependency-cruiser.cjs"] }, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/switch-exhaustiveness-check": "error",
      "@typescript-eslint/no-explicit-any": "error",
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/no-unused-vars": ["error", { ignoreRestSiblings: true, argsIgnorePattern: "^_" }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true, allowBoolean: true }],
      "@typescript-eslint/no-unnecessary-condition": ["error", { allowConstantLoopConditions: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "max-lines": ["error", { max: 300, skipBlankLines: false }],
      "no-restricted-syntax": ["error",
        { selector: "TSEnumDeclaration", message: "No enums: use a union of string literals, or a const array with `as const`." },
        { selector: "ExportDefaultDeclaration", message: "No default exports: a named export has one name everywhere." },
        { selector: "TSModuleDeclaration[kind='namespace']", message: "No namespaces: a file is a module." },
      ],
    },
  },
  {
    files: ["src/session/core/**/*.ts"],
    rules: {
      "no-restricted-globals": ["error", ...pureGlobals.map((name) => ({ name, message: PURE }))],
      "no-restricted-properties": ["error", { object: "Math", property: "random", message: PURE }],
      "no-restricted-syntax": ["error", { selector: "AwaitExpression", message: PURE }, { selector: "TSEnumDeclaration", message: "No enums: use a union of string literals." }],
    },
  },
  {
    files: ["test/**/*.ts"],
    rules: { "max-lines": ["error", { max: 500 }], "@typescript-eslint/no-non-null-assertion": "off", "@typescript-eslint/require-await": "off" },
  },
  {
    files: ["*.config.ts", "web/*.config.ts", "eslint.config.js", ".dependency-cruiser.cjs"],
    rules: { "no-restricted-syntax": "off", "no-undef": "off" },
  },
  {
    files: ["**/*.mjs", "**/*.cjs", "eslint.config.js"],
    ...tseslint.configs.disableTypeChecked,
    languageOptions: { parserOptions: { projectService: false, project: false }, globals: { process: "readonly", console: "readonly", setTimeout: "readonly", clearTimeout: "readonly", URL: "readonly", module: "writable", fetch: "readonly", Buffer: "readonly" } },
  },
);
