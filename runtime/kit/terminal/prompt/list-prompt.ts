/** The prompt of all lists: Inquirer reads the keys, the painter draws what they changed. */
import { createPrompt, isEnterKey, useEffect, useKeypress, useState } from '@inquirer/core'
import { HELP_KEY, type Asked, type Subject } from './question.ts'
import {
  cleared,
  complained,
  decideAnswer,
  findInstant,
  pressed,
  renewed,
  typed,
  UNTOUCHED,
  type MenuState,
} from './menu.ts'
import type { Painter } from './painter.ts'

interface ListPrompt {
  readonly subject: Subject
  readonly painter: Painter
  /** Fires `resize`. */
  readonly resized: EventTarget
  onInput(line: string): void
}

// Inquirer's search and checkbox take letters as text and know no numbers: neither acts on a letter,
// ticks `1 3`, names a refused row, or sends only changed lines to a serial console.
export const listPrompt = createPrompt<Asked, ListPrompt>(
  ({ subject, painter, resized, onInput }, done) => {
    const [state, setState] = useState<MenuState>(UNTOUCHED)
    const [version, setVersion] = useState(0)
    /** The page of the help that is shown; null: none. */
    const [page, setPage] = useState<number | null>(null)
    const question = subject.now()
    useEffect(() => {
      const redraw = () => {
        setState((before) => renewed(subject.now().menu, before))
        setVersion(version + 1)
      }
      const stop = subject.onChange(redraw)
      resized.addEventListener('resize', redraw)
      return () => {
        stop()
        resized.removeEventListener('resize', redraw)
      }
    }, [version])
    const update = (next: MenuState) => {
      onInput(next.line)
      setState(next)
    }
    const submit = () => {
      const answer = decideAnswer(question.menu, state)
      if (answer.ok) done(answer.value)
      else update(complained(state, answer.refusal))
    }
    const turnPage = () => {
      const next = page === null ? 0 : page + 1
      setPage(next < question.help(painter.size()).length ? next : null)
      update(cleared(state))
    }
    useKeypress((key, rl) => {
      const { menu } = question
      if (page !== null || rl.line === HELP_KEY) {
        rl.clearLine(0)
        turnPage()
        return
      }
      if (isEnterKey(key)) {
        submit()
        return
      }
      const next = pressed(menu, state, key.name, pageRows())
      if (next !== null) {
        rl.clearLine(0)
        rl.write(next.line)
        update(next)
        return
      }
      if (key.ctrl && key.name === 'l') painter.forget()
      const instant = findInstant(menu, rl.line)
      if (instant === null) update(typed(menu, state, rl.line, rl.getCursorPos().cols))
      else done(instant)
    })
    const pageRows = () => question.pageRows(painter.size())
    const help = page === null ? undefined : question.help(painter.size())[page]
    painter.paint(help ?? question.frame(state, painter.size()))
    return ''
  },
)
