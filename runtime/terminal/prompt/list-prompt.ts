/** The prompt of all lists: Inquirer reads the keys, the painter draws what they changed. */
import { createPrompt, isEnterKey, useEffect, useKeypress, useState } from '@inquirer/core'
import type { Asked, Subject } from './question.ts'
import {
  complained,
  decideAnswer,
  findInstant,
  moved,
  renewed,
  typed,
  UNTOUCHED,
  type MenuState,
  type Move,
} from './menu.ts'
import type { Painter } from './painter.ts'

interface ListPrompt {
  readonly subject: Subject
  readonly painter: Painter
  /** Fires `resize`. */
  readonly resized: EventTarget
  /** Called after each change of the typed line. */
  onLine(line: string): void
}

const MOVES: Readonly<Record<string, Move>> = {
  up: 'up',
  down: 'down',
  pageup: 'page-up',
  pagedown: 'page-down',
}

export const listPrompt = createPrompt<Asked, ListPrompt>(
  ({ subject, painter, resized, onLine }, done) => {
    const [state, setState] = useState<MenuState>(UNTOUCHED)
    const [version, setVersion] = useState(0)
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
      onLine(next.line)
      setState(next)
    }
    useKeypress((key, rl) => {
      const { menu } = question
      if (isEnterKey(key)) {
        const answer = decideAnswer(menu, state)
        if (answer.ok) done(answer.value)
        else update(complained(state, answer.refusal))
        return
      }
      const move = MOVES[key.name]
      if (move !== undefined || key.name === 'escape') {
        const next = move === undefined ? UNTOUCHED : moved(menu, state, move, pageRows())
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
    painter.paint(question.frame(state, painter.size()))
    return ''
  },
)
