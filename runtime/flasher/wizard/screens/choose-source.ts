/** The catalog screen, and the one where a location is typed. */
import { displayWidth, printable } from '#kit/foundation/printable.ts'
import { fill } from '#kit/texts/text.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import { pad } from '#kit/terminal/text/columns.ts'
import { type WizardContext, askChoice, askStill } from './pending-question.ts'
import type { WizardState, WizardStep } from '../flow/flow.ts'
import { fitted, nextChoice, type NextChoice, type ScreenView } from './screen-layout.ts'

const TEXTS = WIZARD_TEXTS.source
const { choices: CHOICES } = TEXTS
const { capture: CAPTURE } = WIZARD_TEXTS

export async function chooseCatalog(
  state: WizardState,
  context: WizardContext,
): Promise<WizardStep> {
  const { defaultCatalog, drawing } = context
  const choices = listChoices(defaultCatalog, drawing.setting.imageRoot)
  const view = {
    prompt: TEXTS.prompt,
    message: TEXTS.question,
    columns: [
      { title: TEXTS.columns.catalog },
      { title: TEXTS.columns.images, least: 20, cut: 'middle' },
    ],
    choices,
    intro: () => [],
  } as const
  const key = await askChoice(state, view, context)
  if (key === 'd') return { step: 'source', source: defaultCatalog }
  if (key === 'c') return { step: 'ask-source' }
  if (key === 'm') return { step: 'capture' }
  return key === 'l' ? { step: 'source', source: null } : { step: 'quit' }
}

const listChoices = (fallback: string | null, imageRoot: string): readonly NextChoice[] => [
  fallback === null
    ? {
        key: 'd',
        words: ['default'],
        // A letter that does nothing is not offered.
        cells: [`    ${CHOICES.default}`, ''],
        refusal: TEXTS.noDefault,
      }
    : nextChoice('d', ['default'], [CHOICES.default, printable(fallback)]),
  nextChoice('c', ['custom'], [CHOICES.custom, TEXTS.customFrom]),
  nextChoice(
    'l',
    ['local', 'local only'],
    [CHOICES.local, printable(fill(TEXTS.localFrom, { folder: imageRoot }))],
  ),
  nextChoice('m', ['make', CAPTURE.choice, CAPTURE.key], [CAPTURE.choice, CAPTURE.choiceFrom]),
  nextChoice('q', ['quit', 'exit'], [CHOICES.quit, '']),
]

const EXAMPLES = {
  file: '/media/usb/catalog.toml',
  address: 'http://server:8080/catalog.toml',
  registry: 'oras://registry.example/lab/catalog:latest',
} as const

function listExamples(): readonly string[] {
  const { examples: names } = TEXTS
  const width = Math.max(...Object.values(names).map(displayWidth))
  return (['file', 'address', 'registry'] as const).map(
    (kind) => `  ${pad(names[kind], width)}   ${EXAMPLES[kind]}`,
  )
}

/** Enter alone means none; leaving the screen keeps the present one. */
export async function typeSource(state: WizardState, context: WizardContext): Promise<WizardStep> {
  const { drawing } = context
  const view: ScreenView = {
    menu: {
      prompt: TEXTS.locationPrompt,
      columns: [],
      rows: [],
      keys: [{ key: 'q', words: ['quit', 'back', 'b'], does: WIZARD_TEXTS.keys.leave }],
      enter: '',
      takesText: true,
    },
    intro: (size) => [
      ...fitted(
        [
          TEXTS.location,
          ...listExamples(),
          '',
          fill(TEXTS.now, { source: printable(state.source ?? TEXTS.nowNone) }),
        ],
        size,
        drawing,
      ),
      ...fitted([TEXTS.none], size, drawing).map(drawing.ink.faint),
    ],
  }
  const asked = await askStill(state, view, context)
  if (asked.kind === 'text') return { step: 'source', source: asked.text }
  if (asked.kind !== 'key') return { step: 'quit' }
  // Leaving is a choice, too: the images come next.
  return { step: 'source', source: asked.key === 'q' ? state.source : null }
}
