/** The Dockerfile passes hadolint's rules, and each rule notices a slip. The image's layout: test/e2e/image.test.ts. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { REPO_ROOT } from "../../support/cluster.js";
import { dockerfileProblems } from "../../support/dockerfile.js";

const text = readFileSync(join(REPO_ROOT, "Dockerfile"), "utf8");

describe("the Dockerfile", () => {
  it("passes", () => {
    expect(dockerfileProblems(text)).toEqual([]);
  });

  it("takes the same Node in both stages, and the one that the image is tested with", () => {
    const versions = [...text.matchAll(/^FROM node:([\d.]+)-/gm)].map(([, version]) => version);
    expect(versions).toHaveLength(2);
    expect(new Set(versions).size).toBe(1);
    expect(versions[0]?.split(".")[0]).toBe("20");
  });
});

it("keys that docs/kubernetes.md has made in the checkout go neither into git nor into the build", () => {
  const made = [...readFileSync(join(REPO_ROOT, "docs/kubernetes.md"), "utf8").matchAll(/--(?:data-dir|keys-dir) \.\/([\w-]+)/g)].map(([, folder]) => folder ?? "");
  expect(made.length).toBeGreaterThan(0);
  for (const file of [".gitignore", ".dockerignore"]) expect(readFileSync(join(REPO_ROOT, file), "utf8").split("\n").map((line) => line.replace(/\/$/, ""))).toEqual(expect.arrayContaining([...made, ".docket", ".dapr", ".env"]));
});

describe("the rules notice", () => {
  it.each<[code: string, what: string, from: string | RegExp, to: string]>([
    ["DL3000", "a relative WORKDIR", "WORKDIR /app", "WORKDIR app"],
    ["DL3002", "no user", "USER 10001:10001\n", ""],
    ["DL3002", "root", "USER 10001:10001", "USER root"],
    ["DL3003", "a cd", "RUN npm ci", "RUN cd /src && npm ci"],
    ["DL3004", "sudo", "RUN npm ci", "RUN sudo npm ci"],
    ["DL3006", "no tag", /FROM node:\S+-slim/, "FROM node"],
    ["DL3007", "latest", /FROM node:\S+-slim/, "FROM node:latest"],
    ["DL3008", "packages without versions", "RUN npm ci", "RUN apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/* && npm ci"],
    ["DL3009", "lists that stay", "RUN npm ci", "RUN apt-get update && apt-get install -y --no-install-recommends git=1:2.39 && npm ci"],
    ["DL3015", "recommended packages", "RUN npm ci", "RUN apt-get install -y git=1:2.39 && rm -rf /var/lib/apt/lists/* && npm ci"],
    ["DL3016", "npm packages without versions", "RUN npm ci", "RUN npm install -g typescript && npm ci"],
    ["DL3020", "ADD", "COPY . .", "ADD . ."],
    ["DL3022", "a stage that is none", "--from=build", "--from=builder"],
    ["DL3024", "two stages of one name", /(FROM node:\S+-slim)/, "$1 AS build"],
    ["DL3025", "a shell as entry", 'ENTRYPOINT ["node", "/app/bin/app.mjs"]', "ENTRYPOINT node /app/bin/app.mjs"],
    ["DL3027", "apt", "RUN npm ci", "RUN apt update && npm ci"],
    ["DL3045", "a relative copy to nowhere", "WORKDIR /src\n", ""],
    ["DL3059", "two RUN where one would do", "RUN npm run build && ", "RUN npm run build\nRUN "],
    ["DL4000", "a maintainer", "ENV NODE_ENV", "MAINTAINER me\nENV NODE_ENV"],
    ["DL4003", "two commands", "USER 10001", 'CMD ["gateway"]\nCMD ["tools"]\nUSER 10001'],
    ["DL4004", "two entries", "USER 10001", 'ENTRYPOINT ["node"]\nUSER 10001'],
    ["DL4006", "a pipe", "RUN npm ci", "RUN echo x | tee y && npm ci"],
  ])("%s: %s", (code, _what, from, to) => {
    const changed = text.replace(from, to);
    expect(changed).not.toBe(text);
    expect(dockerfileProblems(changed).filter((problem) => problem.startsWith(code))).not.toEqual([]);
  });
});
