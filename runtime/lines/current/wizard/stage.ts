/** The terminal while a server decides: lines below the header, and its flashes on the flashing screen. */
import { printable } from '../../../core/printable.ts'
import type { Desk } from './desk.ts'
import { openState, type State } from './flow.ts'
import { fitted, frameOf } from './screen-frame.ts'
import type { Stage } from './start.ts'

/** As many of the last lines as any terminal shows. */
const MOST_LINES = 12

/** `server`: as it was named; where it answers is known later. */
export function createStage(given: Desk, server: string): Stage {
  const identity = { ...given.drawing.setting.identity, server }
  const drawing = { ...given.drawing, setting: { ...given.drawing.setting, identity } }
  const desk = { ...given, drawing }
  const { painter, look, stdout } = desk
  const said: string[] = []
  const state: State = {
    ...openState({ screen: 'image', catalog: null, notice: null, identity }),
    screen: 'flash',
  }

  function draw() {
    const size = painter.size()
    const lines = fitted(said.slice(-MOST_LINES).map(printable), size, drawing)
    painter.paint(frameOf(state, lines, drawing, size))
  }

  return {
    identity,
    say(line) {
      said.push(line)
      if (look.live) draw()
      else stdout.write(`${printable(line)}\n`)
    },
    async runFlash(order, hooks) {
      const { runFlash } = await import('./flashing.ts')
      const { end } = await runFlash({ ...state, image: order.image }, order, hooks, desk)
      painter.forget()
      return end
    },
  }
}
