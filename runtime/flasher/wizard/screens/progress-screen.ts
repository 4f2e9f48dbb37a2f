/** A screen that asks nothing: drawn anew while something is done, with its help on `?`; Ctrl-C cancels. */
import { holdKeyboard, INTERRUPT } from '#kit/terminal/prompt/keyboard.ts'
import { HELP_KEY } from '#kit/terminal/prompt/question.ts'
import type { WizardState } from '../flow/flow.ts'
import { renderHelp } from './help.ts'
import { fitted, layOutScreen, openScreenCode } from './screen-layout.ts'
import type { WizardContext } from './wizard-context.ts'

interface ProgressView {
  /** Below the header; `seconds`: since the first drawing. */
  render(seconds: number, columns: number): readonly string[]
  /** All that a terminal that cannot redraw shows. */
  phase(): string
  cancel(): void
}

interface ProgressScreen extends Disposable {
  draw(): void
}

/** Often enough to be lively, seldom enough for a serial line. */
const REDRAW_MS = 250

export function openProgressScreen(
  state: WizardState,
  { painter, drawing, style, stdin, stdout, now }: WizardContext,
  view: ProgressView,
): ProgressScreen {
  const before = now()
  let page: number | null = null
  const pages = () => renderHelp(state, { kind: 'none', keys: [] }, drawing, painter.size())
  const code = openScreenCode(drawing, () => {})
  const draw = () => {
    if (!style.tty) {
      stdout.write(`${view.phase()}\n`)
      return
    }
    const size = painter.size()
    const help = page === null ? undefined : pages()[page]
    const lines = () => fitted(view.render(now() - before, size.columns), size, drawing)
    const body = () => code(state, lines(), size)
    painter.paint(help ?? layOutScreen(state, body(), drawing, size))
  }
  /** `?`, or any key while the help is shown. */
  const turnPage = (typed: string) => {
    if (!style.tty || (page === null && typed !== HELP_KEY)) return
    const next = page === null ? 0 : page + 1
    page = next < pages().length ? next : null
    draw()
  }
  using undo = new DisposableStack()
  const keyboard = holdKeyboard(stdin, (chunk) => {
    if (!chunk.includes(INTERRUPT)) {
      turnPage(chunk.toString())
      return
    }
    page = null
    view.cancel()
    draw()
  })
  undo.use(keyboard)
  void keyboard.drained
  if (style.tty) {
    painter.forget()
    undo.use(setInterval(draw, REDRAW_MS))
    undo.defer(painter.onResize(draw))
  }
  draw()
  const held = undo.move()
  return { draw, [Symbol.dispose]: () => held.dispose() }
}
