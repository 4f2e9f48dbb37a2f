/** The catalog screen, and the one where a location is typed. */
import { printable } from '#kit/foundation/printable.ts'
import { type WizardContext, askChoice, askStill } from './pending-question.ts'
import type { WizardState, WizardStep } from '../flow/flow.ts'
import { fitted, nextChoice, type NextChoice, type ScreenView } from './screen-layout.ts'

export async function chooseCatalog(
  state: WizardState,
  context: WizardContext,
): Promise<WizardStep> {
  const { defaultCatalog, drawing } = context
  const choices = listChoices(defaultCatalog, drawing.setting.imageRoot)
  const view = {
    prompt: 'Catalog',
    message: 'Where do the images come from?',
    columns: [{ title: 'Catalog' }, { title: 'Images', least: 20, cut: 'middle' }],
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
        cells: ['    default', ''],
        refusal: 'none is set; FLASHER_DEFAULT_CATALOG names one',
      }
    : nextChoice('d', ['default'], ['default', printable(fallback)]),
  nextChoice('c', ['custom'], ['custom', 'from a file, an http(s) URL or a registry']),
  nextChoice('l', ['local', 'local only'], ['local only', printable(`those in ${imageRoot}`)]),
  nextChoice(
    'm',
    ['make', 'make one', 'capture'],
    ['make one', 'captured from a disk of this machine'],
  ),
  nextChoice('q', ['quit', 'exit'], ['quit', '']),
]

const EXAMPLES = [
  ['a TOML file', '/media/usb/catalog.toml'],
  ['an address', 'http://server:8080/catalog.toml'],
  ['an image in a registry', 'oras://registry.example/lab/catalog:latest'],
] as const

/** Enter alone means none; leaving the screen keeps the present one. */
export async function typeSource(state: WizardState, context: WizardContext): Promise<WizardStep> {
  const { drawing } = context
  const view: ScreenView = {
    menu: {
      prompt: 'Location',
      columns: [],
      rows: [],
      keys: [{ key: 'q', words: ['quit', 'back', 'b'], does: 'leave it as it is' }],
      enter: '',
      takesText: true,
    },
    intro: (size) => [
      ...fitted(
        [
          'Where is the catalog? It may be:',
          ...EXAMPLES.map(([kind, example]) => `  ${kind.padEnd(22)}   ${example}`),
          '',
          `Now it is: ${printable(state.source ?? 'none, local images only')}`,
        ],
        size,
        drawing,
      ),
      ...fitted(['Enter alone: no catalog.'], size, drawing).map(drawing.ink.faint),
    ],
  }
  const asked = await askStill(state, view, context)
  if (asked.kind === 'text') return { step: 'source', source: asked.text }
  if (asked.kind !== 'key') return { step: 'quit' }
  // Leaving is a choice, too: the images come next.
  return { step: 'source', source: asked.key === 'q' ? state.source : null }
}
