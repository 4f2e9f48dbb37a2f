/** `flasher-web flash`: what it asks of a server, what it says of the events, and how it ends. */
import { parseJson } from '#kit/foundation/json-reader.ts'
import { printable } from '#kit/foundation/printable.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import type { Entry } from '#kit/terminal/command/rules/command.ts'

const NOT_FLASHED = 3
/** Flashed, but the new system was not proved to run. */
const NOT_BOOTED = 4
const TIMED_OUT = 5

export const FLASH_EXITS: readonly Entry[] = [
  ['3', 'flash: the machine was not flashed: failed, not-booted, disarmed, replaced or deleted'],
  ['4', 'flash --until booted: it was flashed, but its system was not seen running'],
  ['5', 'flash: timed out; the machine may still be flashed'],
]

const EXITS: Readonly<Record<string, number>> = {
  armed: 0,
  flashed: 0,
  booted: 0,
  failed: NOT_FLASHED,
  'not-booted': NOT_FLASHED,
  deleted: NOT_FLASHED,
  disarmed: NOT_FLASHED,
  replaced: NOT_FLASHED,
  seen: NOT_BOOTED,
  'not-seen': NOT_BOOTED,
  'failed-to-boot': NOT_BOOTED,
  timeout: TIMED_OUT,
}

/** Unknown outcomes are no success. */
export function decideExit(outcome: string, until: 'flashed' | 'booted'): number {
  // Nobody waited for the boot of this run.
  if (outcome === 'flashed' && until === 'booted') return NOT_BOOTED
  return (Object.hasOwn(EXITS, outcome) ? EXITS[outcome] : undefined) ?? NOT_FLASHED
}

interface FlashRequestFields {
  readonly ref: string | null
  readonly disk: string | null
  readonly power: boolean | 'restart'
  readonly until: 'flashed' | 'booted'
  /** Seconds; 0: arm only. */
  readonly wait: number
}

export const renderFlashBody = ({ ref, disk, power, until, wait }: FlashRequestFields) => ({
  ...(ref === null ? {} : { bty_image_ref: ref }),
  ...(disk === null ? {} : { target_disk_serial: disk }),
  ...(power === false ? {} : { power }),
  ...(until === 'flashed' ? {} : { until }),
  ...(wait === 0 ? {} : { wait }),
})

/** By ref or exact name (`GET /images`); null: none or several match. */
export function findRef(images: unknown, named: string): string | null {
  const found = (Array.isArray(images) ? images : []).filter(
    (image) => isRecord(image) && (image['ref'] === named || image['name'] === named),
  )
  const [only] = found
  const ref = found.length === 1 && isRecord(only) ? only['ref'] : null
  return typeof ref === 'string' ? ref : null
}

interface StreamEvent {
  readonly name: string
  readonly data: unknown
}

/** Null: no event, such as a keepalive. */
export function parseStreamEvent(block: string): StreamEvent | null {
  const lines = block.split('\n')
  const read = (field: string) =>
    lines
      .filter((line) => line.startsWith(`${field}: `))
      .map((line) => line.slice(field.length + 2))
  const [name] = read('event')
  return name === undefined ? null : { name, data: parseJson(read('data').join('\n')) }
}

/** Null: nothing to say. */
export function renderRunLine(run: unknown): string | null {
  if (!isRecord(run)) return null
  const { phase, state, step_bytes: bytes, step_total: total, proof, reason } = run
  if (isRecord(proof)) return withReason(`first boot: ${text(proof['state'])}`, proof['reason'])
  if (state !== 'running' && state !== 'stalled') return withReason(`run: ${text(state)}`, reason)
  const share =
    typeof bytes === 'number' && typeof total === 'number' && total > 0
      ? ` ${Math.floor((bytes / total) * 100)} %`
      : ''
  return `run: ${text(phase)}${share}${state === 'stalled' ? ' (stalled)' : ''}`
}

const withReason = (line: string, reason: unknown): string =>
  typeof reason === 'string' ? `${line}, ${printable(reason)}` : line

const text = (value: unknown): string => (typeof value === 'string' ? printable(value) : 'unknown')
