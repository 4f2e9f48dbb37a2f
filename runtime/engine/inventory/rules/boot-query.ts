/** Says how long a boot has taken, as a request for a plan carries it. */

interface BootClocks {
  /** `/proc/uptime`. */
  readonly up: string
  /** Nanoseconds from the reset until the kernel took over; empty: unknown. */
  readonly firmware: string
  /** Microseconds of the kernel's clock when systemd began. */
  readonly micros: string
}

/** `&up=73.25&system=41.8`, perhaps with `&firmware=9.1`, in seconds; empty: unknown. */
export function renderBootTimes({ up, firmware, micros }: BootClocks): string {
  const [, seconds] = /^(\d+\.\d{1,3}) /.exec(up) ?? []
  const system = readCount(micros, 1e6)
  if (seconds === undefined || system === null) return ''
  const reset = readCount(firmware, 1e9)
  return `&up=${seconds}&system=${system}${reset === null ? '' : `&firmware=${reset}`}`
}

/** Seconds with at most three decimals; null: no count. */
function readCount(text: string, unit: number): string | null {
  const [digits] = /^\d+/.exec(text.trim()) ?? []
  const count = Number(digits ?? 0)
  return count === 0 ? null : String(Math.round((count / unit) * 1000) / 1000)
}
