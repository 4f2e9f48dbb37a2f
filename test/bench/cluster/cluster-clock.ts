/** Loaded before a server's program: SIGUSR2 sets the clock of that process an hour forward, then an hour back, then right. */
const STEPS_MS = [0, 3_600_000, -3_600_000]
const { now } = Date
let step = Number(process.env['BENCH_CLOCK_STEP'] ?? 0)

const shifted = () => now() + (STEPS_MS[step % STEPS_MS.length] ?? 0)

globalThis.Date = new Proxy(Date, {
  construct: (target, given, shape) =>
    Reflect.construct(target, given.length === 0 ? [shifted()] : given, shape),
  get: (target, name) => (name === 'now' ? shifted : Reflect.get(target, name)),
})

process.on('SIGUSR2', () => {
  step += 1
})
