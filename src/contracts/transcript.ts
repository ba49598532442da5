/** Owns: the conversation in provider-neutral form: the session writes it from the journal, providers translate it. */

/** Every call is followed by its result in the next `tool_results` message, one per call, in call order. */
export type ModelMessage =
  | { readonly role: "user"; readonly text: string }
  | { readonly role: "assistant"; readonly text: string; readonly calls: readonly { readonly id: string; readonly name: string; /** JSON text */ readonly args: string }[]; /** `carry` of the answer this message was, where it was kept. */ readonly carry?: string }
  | { readonly role: "tool_results"; readonly results: readonly { readonly id: string; readonly name: string; readonly text: string; readonly isError: boolean }[] };
