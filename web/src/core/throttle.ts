/** The clock that timed code runs on, so that tests can bring their own. Times are in milliseconds. */
export interface Clock {
  now(): number;
  setTimeout(f: () => void, ms: number): number;
  clearTimeout(id: number): void;
}

/** The browser's clock. */
export const browserClock: Clock = {
  now: () => performance.now(),
  setTimeout: (f, ms) => window.setTimeout(f, ms),
  clearTimeout: (id) => window.clearTimeout(id),
};

/** A function that runs at most once per interval, at the interval's end, with `flush` to run what waits at once. */
export interface Throttled {
  (): void;
  /** Runs now if a run is waiting. */
  flush(): void;
  /** Drops a waiting run. */
  cancel(): void;
}

/**
 * Throttles with a trailing edge: the first call starts a timer, calls until it fires are one with it, so that the
 * last state is always reported and never later than `ms` after it came to be.
 */
export function throttle(f: () => void, ms: number, clock: Clock = browserClock): Throttled {
  let timer: number | null = null;
  const run = () => {
    timer = null;
    f();
  };
  const throttled = () => {
    timer ??= clock.setTimeout(run, ms);
  };
  const cancel = () => {
    if (timer !== null) clock.clearTimeout(timer);
    timer = null;
  };
  const flush = () => {
    if (timer === null) return;
    cancel();
    f();
  };
  return Object.assign(throttled, { flush, cancel });
}

/** Runs `f` once calls have ceased for `ms`, and no later than `most` after the first of them. */
export function debounce(f: () => void, ms: number, clock: Clock = browserClock, most = Infinity): Throttled {
  let timer: number | null = null;
  let first = 0;
  const cancel = () => {
    if (timer !== null) clock.clearTimeout(timer);
    timer = null;
  };
  const debounced = () => {
    const now = clock.now();
    if (timer === null) first = now;
    cancel();
    timer = clock.setTimeout(() => {
      timer = null;
      f();
    }, Math.min(ms, first + most - now));
  };
  const flush = () => {
    if (timer === null) return;
    cancel();
    f();
  };
  return Object.assign(debounced, { flush, cancel });
}
