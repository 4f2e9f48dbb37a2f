/** Shows the events of a flash: lines and a live bar, JSON lines, or nothing ("Flash lifecycle events"). */
import {
  CAPTURING,
  type FlashEvent,
  GROWING,
  type WriteProgress,
} from '#engine/flash/rules/flash-plan.ts'
import { type Cases, decideCase } from '#kit/foundation/cases.ts'
import { renderJsonLine } from '#kit/foundation/json-reader.ts'
import { printable } from '#kit/foundation/printable.ts'
import {
  renderSize,
  renderDuration,
  renderPercent,
  renderRate,
  renderPartOf,
} from '#kit/foundation/size.ts'
import { columnsOf, type TerminalStyle, type Output } from '#kit/terminal/text/terminal-style.ts'

const DELTA = {
  compared: 'Writing only what differs from the image.',
  'mostly-different': 'Writing the whole image, because the disk differs too much.',
  'no-index': 'Writing the whole image, because it has no index to compare with.',
  untrusted: 'Writing the whole image, because the digest of its index is unknown.',
} as const

interface BarStyle {
  /** The line stays shorter than this. */
  readonly columns: number
  readonly unicode: boolean
  /** The measure of progress where the decoded size is unknown. */
  readonly storedBytes: number | null
  /** A capture: its progress counts as reading. */
  readonly isReading?: boolean
}

/** 0 to 1; null: the total is unknown. */
export function fractionOf(
  { phase, bytes_read, bytes_written, total_bytes }: WriteProgress,
  storedBytes: number | null,
): number | null {
  if (total_bytes !== null && total_bytes > 0) return clamp(bytes_written / total_bytes)
  const isReading = phase === 'write' && storedBytes !== null && storedBytes > 0
  return isReading ? clamp(bytes_read / storedBytes) : null
}

/** As far as known: `45%  1.80 of 4.00 GB  412 MB/s`. */
export function renderStatus(progress: WriteProgress, storedBytes: number | null): string {
  return statusParts(progress, storedBytes).join('  ')
}

/**
 * Shorter than the terminal: ` write 45% [#########----------] 1.80 of 4.00 GB 412 MB/s 0:05 left`
 */
export function renderBar(progress: WriteProgress, style: BarStyle): string {
  const fraction = fractionOf(progress, style.storedBytes)
  const [percent, ...details] = statusParts(progress, style.storedBytes)
  const phase = style.isReading === true ? 'read' : progress.phase
  const head = ` ${phase.padEnd('verify'.length)} ${(percent ?? '').padStart(4)}`
  const tail = details.join('  ')
  const room = Math.min(40, style.columns - 1 - head.length - tail.length - 4)
  const bar = fraction !== null && room >= 8 ? ` ${drawBar(fraction, room, style.unicode)}` : ''
  return `${head}${bar}  ${tail}`.slice(0, style.columns - 1)
}

function statusParts(progress: WriteProgress, storedBytes: number | null): readonly string[] {
  const { bytes_written, total_bytes, rate, eta_seconds } = progress
  const fraction = fractionOf(progress, storedBytes)
  return [
    fraction === null ? '' : renderPercent(fraction),
    total_bytes === null ? renderSize(bytes_written) : renderPartOf(bytes_written, total_bytes),
    ...(rate > 0 ? [renderRate(rate)] : []),
    ...(eta_seconds === null ? [] : [`${renderDuration(eta_seconds)} left`]),
  ]
}

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const

function drawBar(fraction: number, width: number, unicode: boolean): string {
  if (!unicode) {
    const inner = width - 2
    const done = Math.floor(fraction * inner)
    return `[${'#'.repeat(done)}${'-'.repeat(inner - done)}]`
  }
  const eighths = Math.floor(fraction * width * 8)
  const full = '█'.repeat(Math.floor(eighths / 8))
  const drawn = full + (EIGHTHS[eighths % 8] ?? '')
  return drawn + '░'.repeat(width - drawn.length)
}

const clamp = (fraction: number) => Math.min(1, Math.max(0, fraction))

interface ProgressVoice {
  show(event: FlashEvent): void
  clear(): void
}

interface ProgressDependencies {
  readonly stdout: Output
  readonly stderr: Output
  /** The style of stderr. */
  readonly style: TerminalStyle
  /** Size of the stored image; null: unknown. */
  readonly storedBytes: () => number | null
  /** On any steady clock. */
  readonly now: () => number
}

export type ProgressMode = 'text' | 'ndjson' | 'none'

export const createProgress = (
  mode: ProgressMode,
  dependencies: ProgressDependencies,
): ProgressVoice =>
  ({
    text: () => createText(dependencies),
    ndjson: () => ({
      show: (event: FlashEvent) => {
        dependencies.stdout.write(renderEventLine(event))
      },
      clear: nothing,
    }),
    none: () => ({ show: nothing, clear: nothing }),
  })[mode]()

/** Keys as deployed clients have them: `event`, `note`, `total_bytes`, then the rest; no nulls. */
export function renderEventLine(event: FlashEvent): string {
  const { event: name, note, total_bytes, ...rest } = { note: null, total_bytes: null, ...event }
  const fields = Object.entries({ event: name, note, total_bytes, ...rest })
  return `${renderJsonLine(Object.fromEntries(fields.filter(([, value]) => value !== null)))}\n`
}

export function renderEventText(event: FlashEvent): string {
  const { event: name, note, total_bytes } = { note: '', total_bytes: null, ...event }
  const total = name === 'started' && total_bytes !== null ? ` total_bytes=${total_bytes}` : ''
  return `[${name}]${note === '' ? '' : ` ${printable(note)}`}${total}\n`
}

export const renderEventWords = (event: FlashEvent): string =>
  `${printable(decideCase(NOTES, 'event', event))}\n`

const NOTES: Cases<'event', FlashEvent, string> = {
  started: ({ total_bytes }) =>
    total_bytes === null
      ? 'Preparing the disk.'
      : `Preparing the disk, ${renderSize(total_bytes)} to write.`,
  writing: ({ phase, note, delta }) => {
    if (delta !== undefined) return DELTA[delta]
    if (note === GROWING) return 'Growing the last partition and its file system.'
    if (note === CAPTURING) return 'Writing the image of the disk.'
    if (phase === 'verify') return 'Reading back what was written.'
    return note === undefined ? 'Writing the image.' : `Writing the image (${note}).`
  },
  synced: () => 'Everything is on the disk.',
  partprobed: () => 'The kernel has read the new partition table.',
  provisioning: ({ note }) => PROVISIONING[note] ?? note,
  done: () => 'The disk is ready.',
  failed: ({ note }) => `Failed: ${note}`,
}

const PROVISIONING: Readonly<Record<string, string>> = {
  'cloud-init': 'Adding the cloud-init data.',
  cijoe: 'Running the cijoe workflow.',
}

const REDRAW_SECONDS = 0.1
/** A line of a log after this time, or this much more done but at least a second. */
const LOG_SECONDS = 10
const LOG_FRACTION = 0.1
const LOG_LEAST_SECONDS = 1

function createText({ stderr, style, storedBytes, now }: ProgressDependencies): ProgressVoice {
  const isForPeople = style.tty || stderr.isTTY === true
  let isDrawn = false
  let last = { at: -Infinity, fraction: 0 }

  function clear() {
    if (isDrawn) stderr.write('\r\u001b[K')
    isDrawn = false
  }

  function draw(progress: WriteProgress) {
    if (now() - last.at < REDRAW_SECONDS) return
    last = { at: now(), fraction: 0 }
    const { unicode } = style
    const columns = columnsOf(stderr.columns)
    stderr.write(
      `\r${renderBar(progress, { columns, unicode, storedBytes: storedBytes() })}\u001b[K`,
    )
    isDrawn = true
  }

  function log(progress: WriteProgress) {
    const fraction = fractionOf(progress, storedBytes()) ?? 0
    const waited = now() - last.at
    const isMore = fraction - last.fraction >= LOG_FRACTION && waited >= LOG_LEAST_SECONDS
    if (waited < LOG_SECONDS && !isMore) return
    last = { at: now(), fraction }
    const status = renderStatus(progress, storedBytes()).trimStart()
    stderr.write(isForPeople ? `${status}\n` : `[writing] ${status}\n`)
  }

  return {
    clear,
    show(event) {
      if (event.event === 'writing' && event.note === undefined) {
        if (style.tty) draw(event)
        else log(event)
        return
      }
      clear()
      stderr.write(isForPeople ? renderEventWords(event) : renderEventText(event))
      // A phase begins: its first line has just been printed.
      if (event.event === 'writing') last = { at: style.tty ? -Infinity : now(), fraction: 0 }
    },
  }
}

const nothing = () => {}

// Shows the events of several flashes at once: a bar a disk, lines that begin with the disk, or JSON lines.

export interface ManyProgress {
  /** As the user named it. */
  show(event: FlashEvent, disk: string): void
}

interface ManyProgressOptions extends ProgressDependencies {
  readonly mode: ProgressMode
  readonly disks: readonly string[]
}

export function createManyProgress(options: ManyProgressOptions): ManyProgress {
  const { mode, stdout } = options
  if (mode === 'none') return { show: () => {} }
  if (mode === 'text') return createManyText(options)
  return {
    show: (event, target) => {
      const fields: unknown = JSON.parse(renderEventLine(event))
      stdout.write(`${renderJsonLine({ target, ...Object(fields) })}\n`)
    },
  }
}

function createManyText({
  disks,
  stderr,
  style,
  storedBytes,
  now,
}: ManyProgressOptions): ManyProgress {
  const bars = new Map<string, WriteProgress>()
  const logged = new Map<string, number>()
  const width = Math.max(...disks.map((disk) => printable(disk).length))
  const head = (disk: string) => printable(disk).padEnd(width)
  const isForPeople = style.tty || stderr.isTTY === true
  let drawn = 0
  let drawnAt = -Infinity

  function clear() {
    if (drawn > 0) stderr.write(`\u001b[${drawn}A\u001b[J`)
    drawn = 0
  }

  function draw() {
    const columns = columnsOf(stderr.columns) - width - 1
    const barStyle = { columns, unicode: style.unicode, storedBytes: storedBytes() }
    const lines = disks.flatMap((disk) => {
      const progress = bars.get(disk)
      return progress === undefined ? [] : [`${head(disk)} ${renderBar(progress, barStyle)}\n`]
    })
    clear()
    stderr.write(lines.join(''))
    drawn = lines.length
    drawnAt = now()
  }

  function say(event: FlashEvent, disk: string) {
    if (event.event !== 'writing') bars.delete(disk)
    clear()
    const line = isForPeople ? renderEventWords(event) : renderEventText(event)
    stderr.write(`${head(disk)} ${line}`)
    if (style.tty) draw()
  }

  return {
    show(event, disk) {
      if (event.event !== 'writing' || event.note !== undefined) {
        say(event, disk)
        logged.set(disk, now())
        return
      }
      bars.set(disk, event)
      if (style.tty) {
        if (now() - drawnAt >= REDRAW_SECONDS) draw()
      } else if (now() - (logged.get(disk) ?? -Infinity) >= LOG_SECONDS) {
        logged.set(disk, now())
        const status = renderStatus(event, storedBytes()).trimStart()
        stderr.write(`${head(disk)} ${isForPeople ? '' : '[writing] '}${status}\n`)
      }
    },
  }
}
