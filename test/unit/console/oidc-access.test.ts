/** The pure parts of signing in through an identity provider: where a browser may go afterwards, and what claims give. */
import { describe, expect, it } from "vitest";
import { principalFrom, readAccessMap } from "../../../src/console/oidc/access-map.js";
import { safeReturnTo } from "../../../src/console/oidc/return-to.js";

const ACCESS = "version: 1\nroles:\n  viewer: [{ claim: groups, is: staff }]\n  approver: [{ claim: groups, is: approvers }]\n  admin: [{ claim: groups, is: ops }]\ngroups:\n  finance: [{ claim: groups, is: finance-team }]\n";

describe("where the browser goes afterwards", () => {
  it.each(["//evil.example", "/\\evil.example", "\\\\evil.example", "https:evil.example", "https://evil.example", "javascript:alert(1)", "/..//evil.example", "/.//evil.example", "/\t/evil.example", "/\n/evil.example", "/%09/../..//evil.example", " /approvals", "/approvals\u2028", "", "approvals", "@evil.example",
    "/session/oidc/start", "/v1/audit", `/${"a".repeat(3_000)}`, "/\u0000", "/a\\..\\..\\evil"])("%j is not a page of this console", (asked) => {
    expect(safeReturnTo(asked)).toBe("/approvals");
  });
  it.each([["/sessions?status=IDLE&q=%2F%2Fevil", "/sessions?status=IDLE&q=%2F%2Fevil"], ["/approvals/apr_1", "/approvals/apr_1"], ["/a/../sessions", "/sessions"], ["/%2f%2fevil.example", "/%2f%2fevil.example"], ["/sessions#//evil", "/sessions"]])("%j is %j", (asked, path) => {
    expect(safeReturnTo(asked)).toBe(path);
    expect(new URL(path, "http://console.example").host).toBe("console.example");
  });
  it.each([["x"], { a: "b" }, undefined, 1])("%j is none", (asked) => { expect(safeReturnTo(asked)).toBe("/approvals"); });
});

describe("what claims give", () => {
  it("by verified e-mail, where the map says so: the same name as a key's", () => {
    const map = readAccessMap(`${ACCESS}principal: email\n`, "test");
    const claims = { iss: "https://idp", sub: "1", email: "Ann@Example.com", email_verified: true, groups: ["ops"] };
    expect(principalFrom(map, claims)).toEqual({ id: "ann@example.com", class: "person", roles: ["admin"] });
    for (const wrong of [{ email_verified: false }, { email_verified: undefined }, { email_verified: "true" }, { email: undefined }]) expect(() => principalFrom(map, { ...claims, ...wrong })).toThrow("verified e-mail");
  });

  it("from nested claims and from claims with dots in their names; nothing inherited counts", () => {
    const map = readAccessMap("version: 1\nroles:\n  admin: [{ claim: [realm_access, roles], is: boss }]\n  viewer: [{ claim: 'https://example.com/staff', is: true }]\n  operator: [{ claim: [constructor, name], is: Object }]\n", "test");
    expect(principalFrom(map, { iss: "i", sub: "s", realm_access: { roles: ["boss"] } }).roles).toEqual(["admin"]);
    expect(principalFrom(map, { iss: "i", sub: "s", "https://example.com/staff": true }).roles).toEqual(["viewer"]);
    expect(principalFrom(map, { iss: "i", sub: "s", "https://example.com/staff": "true", groups: ["admin"] }).roles).toEqual([]);
  });

  it.each(["version: 2\nroles: {}", "version: 1\nroles: { root: [{ claim: a, is: b }] }", "version: 1\nroles: {}\ngroups: { admin: [{ claim: a, is: b }] }", "version: 1\nroles: {}\nextra: 1", "[", "version: 1\nroles: { admin: [] }"])("a map that is none is refused: %j", (text) => {
    expect(() => readAccessMap(text, "access.yaml")).toThrow(/access\.yaml/);
  });
});
