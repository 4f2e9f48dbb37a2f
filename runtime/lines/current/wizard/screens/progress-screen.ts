/** A screen that asks nothing: drawn anew while something is done, with its help on `?`. */
import { HELP_KEY } from '../../../../terminal/prompt/question.ts'
import type { State } from '../flow/flow.ts'
import { renderHelp } from './help.ts'
import { fitted, frameOf } from './screen-frame.ts'
import type { WizardContext } from './wizard-context.ts'

interface ProgressScreen extends Disposable {
  draw(): void
  /** Something was typed: `?`, or any key while the help is shown. */
  help(typed: string): void
  closeHelp(): void
}

/** Often enough to be lively, seldom enough for a serial line. */
const REDRAW_MS = 250

/** `render`: what stands below the header so many seconds after the first drawing. */
export function openProgressScreen(
  state: State,
  { painter, drawing, now }: WizardContext,
  render: (seconds: number, columns: number) => readonly string[],
): ProgressScreen {
  const before = now()
  /** The page of the help that is shown; null: none. */
  let page: number | null = null
  const pages = () => renderHelp(state, { kind: 'none', keys: [] }, drawing, painter.size())
  const draw = () => {
    const size = painter.size()
    const help = page === null ? undefined : pages()[page]
    if (help !== undefined) {
      painter.paint(help)
      return
    }
    const body = render(now() - before, size.columns)
    painter.paint(frameOf(state, fitted(body, size, drawing), drawing, size))
  }
  painter.forget()
  const timer = setInterval(draw, REDRAW_MS)
  const stopResizing = painter.onResize(draw)
  return {
    draw,
    help(typed) {
      if (page === null && typed !== HELP_KEY) return
      const next = page === null ? 0 : page + 1
      page = next < pages().length ? next : null
      draw()
    },
    closeHelp() {
      page = null
    },
    [Symbol.dispose]() {
      clearInterval(timer)
      stopResizing()
    },
  }
}
