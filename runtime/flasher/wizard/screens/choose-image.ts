/** The first screens: the catalog, chosen or typed, and its images below those of this machine. */
import { printable } from '#kit/foundation/printable.ts'
import {
  type WizardContext,
  askChoice,
  askStill,
  fitted,
  nextChoice,
  type NextChoice,
  type ScreenView,
  askMeanwhile,
  backKey,
  QUIT_KEY,
  REFRESH_KEY,
  stepOf,
  inFull,
} from './screen.ts'
import type { WizardState, WizardStep } from '../flow/flow.ts'
import type { CatalogImage, CatalogRefusal } from '#engine/catalog/rules/catalog-source.ts'
import { renderError } from '#kit/foundation/fault.ts'
import type { ImageRow } from '#engine/image/rules/image.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { renderNumber } from '#kit/foundation/text.ts'
import type { Size } from '#kit/terminal/prompt/painter.ts'
import { decideArch, refOf } from '#engine/catalog/rules/catalog.ts'
import { renderSize } from '#kit/foundation/size.ts'
import type { Column } from '#kit/terminal/text/columns.ts'
import type { Menu, MenuRow } from '#kit/terminal/prompt/menu.ts'
import type { ChosenImage } from '#flasher/order/rules/flash-choice.ts'

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
        refusal: 'none set; name one in FLASHER_DEFAULT_CATALOG',
      }
    : nextChoice('d', ['default'], ['default', printable(fallback)]),
  nextChoice('c', ['custom'], ['custom', 'from a file, an http(s) URL or a registry']),
  nextChoice('l', ['local', 'local only'], ['local only', printable(`the files in ${imageRoot}`)]),
  nextChoice(
    'm',
    ['make', 'make one', 'capture'],
    ['make one', 'read a disk of this machine into an image'],
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
      keys: [{ key: 'q', words: ['quit', 'back', 'b'], does: 'keep the current one' }],
      enter: '',
      takesText: true,
    },
    intro: (size) => [
      ...fitted(
        [
          'Where is the catalog? Type one of:',
          ...EXAMPLES.map(([kind, example]) => `  ${kind.padEnd(22)}   ${example}`),
          '',
          `Current catalog: ${printable(state.source ?? 'none, only images of this machine')}`,
        ],
        size,
        drawing,
      ),
      ...fitted(['Press Enter alone for no catalog.'], size, drawing).map(drawing.ink.faint),
    ],
  }
  const asked = await askStill(state, view, context)
  if (asked.kind === 'text') return { step: 'source', source: asked.text }
  if (asked.kind !== 'key') return { step: 'quit' }
  // Leaving is a choice, too: the images come next.
  return { step: 'source', source: asked.key === 'q' ? state.source : null }
}

// The image screen: local images at once, those of the catalog as soon as it has loaded.

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
    menu: createImageMenu(rows),
    intro: (size) => introduce(state, known, rows.length === 0, context, size),
  }
}

export const createImageMenu = (rows: readonly MenuRow[]): Menu => ({
  prompt: 'Image',
  columns: imageColumns(rows),
  rows,
  keys: [
    backKey('catalog'),
    { key: 'm', words: ['make', 'capture'], does: 'capture' },
    REFRESH_KEY,
    QUIT_KEY,
  ],
  enter: null,
})

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
  const faint = isLoading ? [`Loading the catalog ${source} ...`] : renderFlaws(catalog)
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
  return [`Catalog not loaded: ${message}`, ...(hint === null ? [] : [hint])]
}

/** Two of them are enough to see what is wrong. */
function renderFlaws(catalog: KnownImages['catalog']): readonly string[] {
  if (catalog?.ok !== true) return []
  const { flaws } = catalog.value
  const shown = flaws.slice(0, 2).map((flaw) => `Skipped: ${flaw}`)
  const more = flaws.length - shown.length
  return more > 0 ? [...shown, `and ${renderNumber(more)} more skipped`] : shown
}

const nothingHere = (imageRoot: string, source: string | null): readonly string[] => [
  source === null ? 'No images yet.' : 'No images on this machine or in the catalog.',
  `Copy some (.img, .img.zst, .qcow2 ...) to ${imageRoot}.`,
  'Then press [r] to look again, or [b] to choose a catalog.',
]

interface ImageOffer {
  readonly choice: ChosenImage
  readonly arch: string | null
  readonly from: 'local' | 'remote'
  /** Null: it can be chosen. */
  readonly refusal: string | null
}

/** In the order of the cells. `tells`: it can tell images of the same name apart. */
const COLUMNS = [
  { title: 'Name', least: 16, tells: true },
  { title: 'Size', side: 'right', drops: 1 },
  { title: 'Format', drops: 3 },
  { title: 'Arch', drops: 4 },
  { title: 'From', drops: 5 },
  { title: 'SHA-256', least: 8, drops: 2 },
] as const satisfies readonly Column[]

/** Reasons are in the last column, which then stays. */
const REASONS = { title: 'SHA-256', least: 17 } as const

/** The column that tells images of the same name apart is shortened last, as the name is. */
export function imageColumns(rows: readonly MenuRow[]): readonly Column[] {
  const groups = [...Map.groupBy(rows, ({ cells }) => cells[0]).values()]
  const alike = groups.filter((group) => group.length > 1)
  const tells = (index: number) =>
    alike.some((group) => new Set(group.map(({ cells }) => cells[index])).size > 1)
  // One is enough; the first is what people know the images by.
  const telling = [3, 2, 4, 1, 5].find(tells)
  const isRefused = rows.some(({ refusal }) => refusal !== null)
  return COLUMNS.map((column, index) => {
    const { drops: _drops, ...kept } = { drops: 0, ...column }
    if (index === telling) return { ...kept, tells: true }
    return index === 5 && isRefused ? REASONS : column
  })
}

/** An image that is also in the catalog is offered once, from here, with its digest. */
export function listImageOffers(
  local: readonly ImageRow[],
  catalog: readonly CatalogImage[],
): readonly ImageOffer[] {
  const here = local.map((row) => offerLocal(row, catalog))
  const refs = new Set(here.map(({ choice }) => choice.ref).filter((ref) => ref !== null))
  const locations = new Set(here.map(({ choice }) => choice.location))
  const seen = new Set<string>()
  const there = catalog.filter(({ ref, location, sha256 }) => {
    if (locations.has(location)) return false
    if (ref === null) return true
    // The same source with a digest and without is not the same promise.
    const key = `${ref} ${sha256}`
    const isNew = !refs.has(ref) && !seen.has(key)
    seen.add(key)
    return isNew
  })
  return [...here, ...there.map(offerRemote)]
}

function offerLocal(
  { name, path, format, size_bytes }: ImageRow,
  catalog: readonly CatalogImage[],
): ImageOffer {
  const parsed = refOf(`file://${path}`)
  const ref = parsed.ok ? parsed.value : null
  const location = path.startsWith('/') ? path : `./${path}`
  const listed = catalog.find(
    (one) =>
      one.sha256 !== null && (one.location === location || (ref !== null && one.ref === ref)),
  )
  // Null: a digest beside the image is still read before the flash.
  const sha256 = listed?.sha256 ?? null
  const choice = { name, location, format, sizeBytes: size_bytes, sha256, ref }
  const refusal = size_bytes === 0 ? 'the file is empty' : null
  return { choice, arch: decideArch(null, [name]), from: 'local', refusal }
}

function offerRemote(image: CatalogImage): ImageOffer {
  const { name, location, format, sizeBytes, sha256, ref, arch, obstacle } = image
  const choice = { name, location, format, sizeBytes, sha256, ref }
  return { choice, arch, from: isHere(location) ? 'local' : 'remote', refusal: obstacle }
}

const isHere = (location: string) => !/^[a-z][a-z0-9+.-]*:\/\//i.test(location)

/** A reason stands where a digest would. */
export function renderImageRow({ choice, arch, from, refusal }: ImageOffer): MenuRow {
  const { name, sizeBytes, format, sha256 } = choice
  const cells = [
    name,
    sizeBytes === null ? '' : renderSize(sizeBytes),
    format ?? '',
    arch ?? '',
    from,
    refusal === null ? (sha256?.slice(0, 12) ?? '') : `(${refusal})`,
  ]
  return { cells: cells.map(printable), refusal }
}
