/** The image screen: local images at once, those of the catalog as soon as it has loaded. */
import type { CatalogImage, CatalogRefusal } from '#engine/catalog/rules/catalog-source.ts'
import { renderError } from '#kit/foundation/fault.ts'
import type { ImageRow } from '#engine/image/rules/image.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { fill, fillCount } from '#kit/texts/text.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import type { Size } from '#kit/terminal/prompt/painter.ts'
import type { WizardContext } from './wizard-context.ts'
import type { WizardState, WizardStep } from '../flow/flow.ts'
import {
  imageColumns,
  listImageOffers,
  renderImageRow,
  type ImageOffer,
} from '../flow/image-offers.ts'
import { inFull, type ScreenView } from './screen-layout.ts'
import { askMeanwhile, backKey, QUIT_KEY, REFRESH_KEY, stepOf } from './pending-question.ts'

const TEXTS = WIZARD_TEXTS.image
const { keys: KEYS, capture: CAPTURE } = WIZARD_TEXTS

interface ListedCatalog {
  readonly images: readonly CatalogImage[]
  readonly flaws: readonly string[]
}

interface KnownImages {
  local: readonly ImageRow[] | null
  /** Why this machine's images cannot be listed. */
  trouble: string | null
  /** Null: it is being loaded, or there is none. */
  catalog: Result<ListedCatalog, CatalogRefusal> | null
}

export async function chooseImage(state: WizardState, context: WizardContext): Promise<WizardStep> {
  const known: KnownImages = { local: null, trouble: null, catalog: null }
  // Local images take a moment: the first frame waits, to be drawn only once.
  await readLocal(known, context)
  const view = () => viewOf(state, known, context)
  const asked = await askMeanwhile(state, view, context, (changed, signal) =>
    readCatalog(state, known, context, signal).then(changed),
  )
  if (asked.kind !== 'row') return stepOf(asked)
  const offer = listOffers(known)[asked.index]
  return offer === undefined ? { step: 'refresh' } : { step: 'image', image: offer.choice }
}

async function readLocal(known: KnownImages, context: WizardContext): Promise<void> {
  try {
    known.local = await context.listLocal()
  } catch (thrown) {
    // The catalog's images can still be chosen.
    known.trouble = renderError(thrown)
  }
}

async function readCatalog(
  { source }: WizardState,
  known: KnownImages,
  context: WizardContext,
  signal: AbortSignal,
) {
  if (source === null) return
  try {
    // Lazy: only where there is a manifest.
    const { renderFlaw } = await import('#engine/catalog/rules/manifest.ts')
    const loaded = await context.loadCatalog(source, signal)
    if (!loaded.ok) known.catalog = loaded
    else {
      const { images, flaws } = loaded.value
      known.catalog = accept({ images, flaws: flaws.map(renderFlaw) })
    }
  } catch (thrown) {
    const message = renderError(thrown)
    known.catalog = refuse({ code: 'input-invalid', message, hint: null })
  }
}

const listOffers = ({ local, catalog }: KnownImages): readonly ImageOffer[] =>
  listImageOffers(local ?? [], catalog?.ok === true ? catalog.value.images : [])

function viewOf(state: WizardState, known: KnownImages, context: WizardContext): ScreenView {
  const rows = listOffers(known).map(renderImageRow)
  return {
    menu: {
      prompt: TEXTS.prompt,
      columns: imageColumns(rows),
      rows,
      keys: [
        backKey(KEYS.catalog),
        { key: 'm', words: ['make', CAPTURE.key], does: CAPTURE.key },
        REFRESH_KEY,
        QUIT_KEY,
      ],
      enter: 'r',
    },
    intro: (size) => introduce(state, known, rows.length === 0, context, size),
  }
}

function introduce(
  { source }: WizardState,
  { trouble, catalog }: KnownImages,
  isEmpty: boolean,
  { drawing }: WizardContext,
  size: Size,
): readonly string[] {
  const { ink, setting } = drawing
  const isLoading = source !== null && catalog === null
  const red = [...(trouble === null ? [] : [trouble]), ...renderFailure(catalog)]
  const faint = isLoading ? [fill(TEXTS.loading, { source })] : renderFlaws(catalog)
  const empty = isEmpty && !isLoading ? nothingHere(setting.imageRoot, source) : []
  const lines = [
    ...inFull(red, size).map(ink.danger),
    ...inFull(faint, size).map(ink.faint),
    ...inFull(empty, size),
  ]
  return lines.length === 0 ? [] : [...lines, '']
}

function renderFailure(catalog: KnownImages['catalog']): readonly string[] {
  if (catalog?.ok !== false) return []
  const { message, hint } = catalog.refusal
  return [fill(TEXTS.loadFailed, { reason: message }), ...(hint === null ? [] : [hint])]
}

/** Two of them are enough to see what is wrong. */
function renderFlaws(catalog: KnownImages['catalog']): readonly string[] {
  if (catalog?.ok !== true) return []
  const { flaws } = catalog.value
  const shown = flaws.slice(0, 2).map((flaw) => fill(TEXTS.leftOut, { flaw }))
  const more = flaws.length - shown.length
  return more > 0 ? [...shown, fillCount(TEXTS.moreLeftOut, more)] : shown
}

const nothingHere = (imageRoot: string, source: string | null): readonly string[] => [
  source === null ? TEXTS.noneHere : TEXTS.noneAnywhere,
  fill(TEXTS.copySome, { folder: imageRoot }),
  TEXTS.thenLookAgain,
]
