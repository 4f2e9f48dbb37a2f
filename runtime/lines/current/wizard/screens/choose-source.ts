/** The catalog screen, and the one where a location is typed. */
import { printable } from '../../../../core/foundation/printable.ts'
import type { Asked } from '../../../../terminal/prompt/question.ts'
import type { WizardContext } from './wizard-context.ts'
import type { State, Step } from '../flow/flow.ts'
import { createChoice, createQuestion, fitted, type NextChoice, type View } from './screen-frame.ts'
import { stillSubject } from './pending-question.ts'

export async function chooseCatalog(state: State, context: WizardContext): Promise<Step> {
  const { defaultCatalog, drawing } = context
  const choices = listChoices(defaultCatalog, drawing.setting.imageRoot)
  const view = {
    prompt: 'Catalog',
    message: 'Where do the images come from?',
    columns: [{ title: 'Catalog' }, { title: 'Images', least: 20, cut: 'middle' }],
    choices,
    intro: () => [],
  } as const
  const asked = await context.ask(stillSubject(createChoice(state, view, drawing)))
  const key = asked.kind === 'row' ? choices[asked.index]?.key : keyOf(asked)
  if (key === 'd') return { step: 'source', source: defaultCatalog }
  if (key === 'c') return { step: 'ask-source' }
  return key === 'l' ? { step: 'source', source: null } : { step: 'quit' }
}

const listChoices = (fallback: string | null, imageRoot: string): readonly NextChoice[] => [
  {
    key: 'd',
    words: ['default'],
    // A letter that does nothing is not offered.
    cells: fallback === null ? ['    default', ''] : ['[d] default', printable(fallback)],
    refusal: fallback === null ? 'none is set; FLASHER_DEFAULT_CATALOG names one' : null,
  },
  {
    key: 'c',
    words: ['custom'],
    cells: ['[c] custom', 'from a file, an http(s) URL or a registry'],
    refusal: null,
  },
  {
    key: 'l',
    words: ['local', 'local only'],
    cells: ['[l] local only', printable(`those in ${imageRoot}`)],
    refusal: null,
  },
  { key: 'q', words: ['quit', 'exit'], cells: ['[q] quit', ''], refusal: null },
]

const keyOf = (asked: Asked) => (asked.kind === 'key' ? asked.key : 'q')

export async function typeSource(state: State, context: WizardContext): Promise<Step> {
  const { drawing } = context
  const view: View = {
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
          'Where is the catalog? It may be',
          '  a TOML file              /media/usb/catalog.toml',
          '  an address               http://server:8080/catalog.toml',
          '  an image in a registry   oras://registry.example/lab/catalog:latest',
          '',
          `Now it is: ${printable(state.source ?? 'none, local images only')}`,
        ],
        size,
        drawing,
      ),
      ...fitted(['Enter alone: no catalog.'], size, drawing).map(drawing.ink.faint),
    ],
  }
  const asked = await context.ask(stillSubject(createQuestion(state, view, drawing)))
  if (asked.kind === 'quit') return { step: 'quit' }
  if (asked.kind === 'text') return { step: 'source', source: asked.text }
  // Leaving it is a choice too: the images are what comes next.
  return { step: 'source', source: keyOf(asked) === 'q' ? state.source : null }
}
