/** Notes when machines were turned on and when they asked for the files of their live system, until a run takes it. */
import type { Run } from '../../engine/inventory/rules/run.ts'

/** What is noted by the server's own clock, in the order in which it happens. */
const NOTED = ['power_on_at', 'kernel_at', 'initrd_at'] as const
type NotedStamp = (typeof NOTED)[number]

/** Machines that are turned on and never flash are forgotten in the order in which they came. */
const MAX_MACHINES = 10_000

export type BootStamps = ReturnType<typeof createBootStamps>

export function createBootStamps(now: () => Date) {
  const stamps = new Map<string, Partial<Record<NotedStamp, string>>>()

  return {
    /** A later boot takes the place of an earlier one: what comes after this stamp is forgotten. */
    note(mac: string, stamp: NotedStamp): void {
      const kept = NOTED.slice(0, NOTED.indexOf(stamp))
      const before = stamps.get(mac) ?? {}
      stamps.delete(mac)
      if (stamps.size >= MAX_MACHINES) {
        for (const oldest of stamps.keys()) {
          stamps.delete(oldest)
          break
        }
      }
      const earlier = kept.flatMap((name) =>
        before[name] === undefined ? [] : [[name, before[name]] as const],
      )
      stamps.set(mac, { ...Object.fromEntries(earlier), [stamp]: now().toISOString() })
    },
    /** What was noted of a machine whose run begins; it is forgotten here. */
    take(mac: string): Partial<NonNullable<Run['stamps']>> {
      const noted = stamps.get(mac) ?? {}
      stamps.delete(mac)
      return noted
    },
  }
}
