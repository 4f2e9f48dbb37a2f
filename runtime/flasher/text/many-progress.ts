/** Shows the events of several flashes at once: a bar a disk, lines that begin with the disk, or JSON lines. */
import type { FlashEvent, WriteProgress } from '#engine/flash/rules/flash.ts'
import { renderJsonLine } from '#kit/foundation/json-text.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderBar, renderStatus } from './bar.ts'
import {
  renderEventLine,
  renderEventText,
  renderEventWords,
  type ProgressDependencies,
  type ProgressMode,
} from './progress.ts'
import { columnsOf } from '#kit/terminal/text/terminal-style.ts'

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
  if (mode === 'text') return createText(options)
  return {
    show: (event, target) => {
      const fields: unknown = JSON.parse(renderEventLine(event))
      stdout.write(`${renderJsonLine({ target, ...Object(fields) })}\n`)
    },
  }
}

const REDRAW_SECONDS = 0.1
const LOG_SECONDS = 10

function createText({ disks, stderr, style, storedBytes, now }: ManyProgressOptions): ManyProgress {
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
