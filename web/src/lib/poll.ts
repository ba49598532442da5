/** Owns: keeping a view current: asking again at an interval, more often while the console is lost, hardly while nobody looks. */
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError, arrived, get, lostSince, serverNow } from "./api.js";

export interface Polled<T> { readonly value: T | undefined; readonly error: ApiError | undefined; readonly refresh: () => void }

const LOST_MS = 1_000;
const HIDDEN_FACTOR = 8;

/** The newest answer of `path`. With another path the old value is gone at once; `undefined` asks nothing. */
export function usePoll<T>(path: string | undefined, everyMs: number): Polled<T> {
  const [state, setState] = useState<{ path: string | undefined; value: T | undefined; error: ApiError | undefined }>(() => ({ path, value: arrived(path) as T | undefined, error: undefined }));
  const kick = useRef<() => void>(() => undefined);
  // Before the picture is painted: waiting for that costs a frame.
  useLayoutEffect(() => {
    if (path === undefined) return;
    let timer: number | undefined;
    let ended = false;
    let running = false;
    const round = async (): Promise<void> => {
      if (running) return;
      running = true;
      window.clearTimeout(timer);
      try {
        const value = await get<T>(path);
        if (!ended) setState((before) => (before.path === path && before.value === value && before.error === undefined ? before : { path, value, error: undefined }));
      } catch (error) {
        const failure = error instanceof ApiError ? error : new ApiError(String(error), 0);
        if (!ended) setState((before) => ({ path, value: before.path === path ? before.value : undefined, error: failure }));
      }
      running = false;
      if (!ended) timer = window.setTimeout(() => { void round(); }, lostSince.get() === undefined ? everyMs * (document.hidden ? HIDDEN_FACTOR : 1) : LOST_MS);
    };
    const now = (): void => { if (!document.hidden) void round(); };
    kick.current = () => { void round(); };
    document.addEventListener("visibilitychange", now);
    void round();
    return () => { ended = true; window.clearTimeout(timer); document.removeEventListener("visibilitychange", now); };
  }, [path, everyMs]);
  const refresh = useCallback(() => { kick.current(); }, []);
  return state.path === path ? { value: state.value, error: state.error, refresh } : { value: undefined, error: undefined, refresh };
}

/** The server's time, ticking. */
export function useNow(everyMs = 1_000): number {
  const [nowMs, setNowMs] = useState(serverNow());
  useEffect(() => {
    const timer = window.setInterval(() => { setNowMs(serverNow()); }, everyMs);
    return () => { window.clearInterval(timer); };
  }, [everyMs]);
  return nowMs;
}
