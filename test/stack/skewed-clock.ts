/**
 * Loaded into a process before anything else (`node --import`): its wall clock is off by `CLOCK_SKEW_MS`, as that of a host
 * may be. Its monotonic clock, and with it every timer, is right.
 */

const skewMs = Number(process.env['CLOCK_SKEW_MS'] ?? 0);
const rightDate = Date;
const now = (): number => rightDate.now() + skewMs;

globalThis.Date = new Proxy(rightDate, {
  construct(target, args: unknown[], newTarget): object {
    const made: unknown = Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget);
    if (made instanceof rightDate) return made;
    throw new TypeError('not a date');
  },
  get: (target, key): unknown => (key === 'now' ? now : Reflect.get(target, key)),
});
