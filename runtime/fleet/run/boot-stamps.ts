/** Notes when machines were turned on and when they asked for the files of their live system, until a run takes it. */
import { epochOf } from '#kit/foundation/instants.ts'
import { decideToldStamps, type BootTimes, type ToldStamps } from './rules/waterfall.ts'

const NOTED = ['power_on_at', 'kernel_at', 'initrd_at'] as const
type NotedStamp = (typeof NOTED)[number]

/** Machines that are turned on and never flash are forgotten, oldest first. */
const MAX_MACHINES = 10_000

/** Boot loaders ask several times within one boot. */
const SAME_BOOT_MS = 5000
/** Firmware that trains much memory takes minutes; beyond this it is another boot. */
const LONGEST_FIRMWARE_MS = 30 * 60_000

type Noted = Partial<Record<NotedStamp, string>> & ToldStamps

interface Boot {
  readonly noted: Noted
  /** Milliseconds since the epoch; null: it has not asked yet. */
  readonly askedAt: number | null
}

const NO_BOOT: Boot = { noted: {}, askedAt: null }

export type BootStamps = ReturnType<typeof createBootStamps>

export function createBootStamps(now: () => Date) {
  const boots = new Map<string, Boot>()

  function keep(mac: string, boot: Boot): void {
    boots.delete(mac)
    if (boots.size >= MAX_MACHINES) {
      for (const oldest of boots.keys()) {
        boots.delete(oldest)
        break
      }
    }
    boots.set(mac, boot)
  }

  return {
    /** Forgets what a former boot noted after this stamp. */
    note(mac: string, stamp: NotedStamp): void {
      const kept = NOTED.slice(0, NOTED.indexOf(stamp))
      const { noted, askedAt } = boots.get(mac) ?? NO_BOOT
      const earlier = kept.flatMap((name) =>
        noted[name] === undefined ? [] : [[name, noted[name]] as const],
      )
      keep(mac, {
        noted: { ...Object.fromEntries(earlier), [stamp]: now().toISOString() },
        askedAt: stamp === 'power_on_at' ? null : askedAt,
      })
    },
    tell(mac: string, times: BootTimes): void {
      const boot = boots.get(mac) ?? NO_BOOT
      const { initrd_at, kernel_at } = boot.noted
      const told = decideToldStamps(times, now().getTime(), initrd_at ?? kernel_at ?? null)
      if (told.start_at !== undefined) keep(mac, { ...boot, noted: { ...boot.noted, ...told } })
    },
    /** Forgets what was noted of the former boot. */
    ask(mac: string): void {
      const boot = boots.size === 0 ? undefined : boots.get(mac)
      if (boot === undefined) return
      const at = now().getTime()
      const { noted, askedAt } = boot
      if (askedAt !== null && at - askedAt < SAME_BOOT_MS) return
      const { power_on_at: on } = noted
      const isFirst = askedAt === null && on !== undefined
      if (isFirst && at - epochOf(on) <= LONGEST_FIRMWARE_MS) {
        boots.set(mac, { noted: { power_on_at: on }, askedAt: at })
      } else boots.delete(mac)
    },
    take(mac: string): Noted {
      const { noted } = boots.get(mac) ?? NO_BOOT
      boots.delete(mac)
      return noted
    },
  }
}
