/** Shows the events of a flash: lines and a live bar, JSON lines, or nothing ("Flash lifecycle events"). */
import {
  CAPTURING,
  GROWING,
  type FlashEvent,
  type WriteProgress,
} from '#engine/flash/rules/flash.ts'
import { type Cases, decideCase } from '#kit/foundation/cases.ts'
import { renderJsonLine } from '#kit/foundation/json-text.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderSize } from '#kit/foundation/size.ts'
import { fill } from '#kit/texts/text.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import { fractionOf, renderBar, renderStatus } from './bar.ts'
import { columnsOf, type TerminalStyle, type Output } from '#kit/terminal/text/terminal-style.ts'

const TEXTS = WIZARD_TEXTS.events

interface ProgressVoice {
  show(event: FlashEvent): void
  clear(): void
}

export interface ProgressDependencies {
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
      ? TEXTS.started
      : fill(TEXTS.startedWithSize, { size: renderSize(total_bytes) }),
  writing: ({ phase, note, delta }) => {
    if (delta !== undefined) return TEXTS.delta[delta]
    if (note === GROWING) return TEXTS.growing
    if (note === CAPTURING) return TEXTS.capturing
    if (phase === 'verify') return TEXTS.readingBack
    return note === undefined ? TEXTS.writing : fill(TEXTS.writingNote, { note })
  },
  synced: () => TEXTS.synced,
  partprobed: () => TEXTS.partprobed,
  provisioning: ({ note }) => PROVISIONING[note] ?? note,
  done: () => TEXTS.done,
  failed: ({ note }) => fill(TEXTS.failed, { reason: note }),
}

const PROVISIONING: Readonly<Record<string, string>> = {
  'cloud-init': TEXTS.cloudInit,
  cijoe: TEXTS.cijoe,
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
