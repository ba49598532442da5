/** Owns: checking in the browser that the digest which is signed is the digest of the arguments on the screen (I5). */
import { useEffect, useState } from "preact/hooks";

/** `unavailable`: browsers offer no hashing to pages without TLS, loopback aside. */
export type DigestCheck = "checking" | "same" | "different" | "unavailable";

export function useDigestCheck(text: string, digest: string): DigestCheck {
  const [result, setResult] = useState<{ of: string; is: DigestCheck }>({ of: "", is: "checking" });
  const of = `${digest}\n${text}`;
  useEffect(() => {
    let ended = false;
    void check(text, digest).then((is) => { if (!ended) setResult({ of, is }); });
    return () => { ended = true; };
  }, [of]);
  return result.of === of ? result.is : "checking";
}

async function check(text: string, digest: string): Promise<DigestCheck> {
  const { subtle } = crypto as { subtle?: SubtleCrypto };
  if (subtle === undefined) return "unavailable";
  const hash = new Uint8Array(await subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return `sha256:${[...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("")}` === digest ? "same" : "different";
}
