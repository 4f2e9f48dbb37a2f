/** The terminal while a server drives: lines below the header, and its flashes on the flashing screen. */
import { printable } from '#kit/foundation/printable.ts'
import { renderVoice } from '#kit/terminal/text/voice.ts'
import type { WizardContext } from './pending-question.ts'
import { openState, type WizardState } from '../flow/flow.ts'
import { layOutScreen, openScreenCode } from './screen-layout.ts'
import type { FlashChoice, DrivenScreen } from '#flasher/order/rules/flash-choice.ts'

/** No terminal shows more of the last lines. */
const MAX_LINES = 12

/** `server`: as named; where it answers is known later. */
export function createDrivenScreen(given: WizardContext, server: string): DrivenScreen {
  const identity = { ...given.drawing.setting.identity, server }
  // A machine that the server has flashed is restarted, too.
  const setting = { ...given.drawing.setting, identity, reboots: true }
  const drawing = { ...given.drawing, setting }
  const context = { ...given, drawing }
  const { painter, style, stdout } = context
  const said: string[] = []
  const state: WizardState = {
    ...openState({ screen: 'image', catalog: null, notice: null, identity }),
    screen: 'flash',
  }

  const stateOf = ({
    image,
    disk: path,
    identity: seen,
    words = '',
  }: FlashChoice): WizardState => ({
    ...state,
    source: "the server's plan",
    image,
    disks: seen === null ? [] : [{ path, identity: seen, words }],
  })

  const code = openScreenCode(drawing, draw)

  function draw() {
    const size = painter.size()
    const steps = renderVoice({ ...drawing, columns: size.columns }, (voice) =>
      said.forEach((line) => voice.start(line)),
    )
    painter.paint(layOutScreen(state, code(state, steps.slice(-MAX_LINES), size), drawing, size))
  }

  return {
    identity,
    say(line) {
      said.push(line)
      if (style.tty) draw()
      else stdout.write(`${printable(line)}\n`)
    },
    async runFlash(choice, hooks) {
      const { runFlash } = await import('./flashing.ts')
      const flashed = await runFlash(stateOf(choice), [choice], hooks, context)
      painter.forget()
      return flashed
    },
  }
}
