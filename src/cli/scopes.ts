/** Every scope that a route asks for. */
export const SCOPES = ["prompts:write", "sessions:read", "sessions:cancel", "console:read", "console:operate", "console:administer", "console:audit", "console:metrics"] as const;
