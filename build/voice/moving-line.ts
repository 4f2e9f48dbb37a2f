/** One line at the bottom of a terminal that is redrawn while something works. */
import type { WriteStream } from 'node:tty'
import { styleText } from 'node:util'

/** What the line shows: a head, which is cut to fit, and parts behind it, each shown only as a whole. */
interface LineText {
  readonly head: string
  readonly rest: readonly string[]
}

export interface MovingLine {
  /** Whether it is on a terminal at all. */
  readonly isShown: boolean
  /** Redraws until `stop`. */
  readonly start: (read: () => LineText) => void
  readonly stop: () => void
  /** Removes what is drawn, so that other lines can be written. */
  readonly clear: () => void
  readonly draw: () => void
}

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 100
const CLEAR_LINE = '\r\u001B[K'
const HIDE_CURSOR = '\u001B[?25l'
const SHOW_CURSOR = '\u001B[?25h'

/** `stream` is null where lines cannot move: in a log, a pipe, a dumb terminal. */
export function createMovingLine(stream: WriteStream | null): MovingLine {
  if (stream === null) return STILL
  let read: (() => LineText) | null = null
  let timer: NodeJS.Timeout | null = null
  let frame = 0

  const clear = () => {
    if (read !== null) stream.write(CLEAR_LINE)
  }
  const draw = () => {
    if (read === null) return
    const { head, rest } = read()
    // The last column stays free: a terminal would go to the next line there.
    const room = Math.max(0, stream.columns - 3)
    const shown = head.slice(0, room)
    const measured = rest.reduce(
      (text, part) => (shown.length + text.length + part.length <= room ? text + part : text),
      '',
    )
    const mark = styleText('cyan', FRAMES[frame % FRAMES.length] ?? '', { stream })
    stream.write(`${CLEAR_LINE}${mark} ${shown}${styleText('dim', measured, { stream })}`)
  }
  const showCursor = () => stream.write(SHOW_CURSOR)
  const stop = () => {
    if (read === null) return
    if (timer !== null) clearInterval(timer)
    clear()
    showCursor()
    process.off('exit', showCursor)
    read = null
  }
  return {
    isShown: true,
    start(next) {
      stop()
      read = next
      process.once('exit', showCursor)
      stream.write(HIDE_CURSOR)
      timer = setInterval(() => {
        frame += 1
        draw()
      }, FRAME_MS)
      draw()
    },
    stop,
    clear,
    draw,
  }
}

const nothing = () => {}
const STILL: MovingLine = {
  isShown: false,
  start: nothing,
  stop: nothing,
  clear: nothing,
  draw: nothing,
}
