/** Lists the images that can be chosen, this machine's first, and why some cannot. Pure. */
import { decideArch, refOf } from '#engine/catalog/rules/catalog.ts'
import type { CatalogImage } from '#engine/catalog/rules/catalog-source.ts'
import type { ImageRow } from '#engine/image/rules/image.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderSize } from '#kit/foundation/size.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import type { Column } from '#kit/terminal/text/columns.ts'
import type { MenuRow } from '#kit/terminal/prompt/menu.ts'
import type { ChosenImage } from '#flasher/order/rules/flash-choice.ts'

export interface ImageOffer {
  readonly choice: ChosenImage
  readonly arch: string | null
  readonly from: 'local' | 'remote'
  /** Null: it can be chosen. */
  readonly refusal: string | null
}

const TEXTS = WIZARD_TEXTS.image

/** In the order of the cells. `tells`: it can tell images of the same name apart. */
const COLUMNS = [
  { title: TEXTS.columns.name, least: 16, cut: 'middle', tells: true },
  { title: TEXTS.columns.size, side: 'right', drops: 1 },
  { title: TEXTS.columns.format, drops: 3 },
  { title: TEXTS.columns.arch, drops: 4 },
  { title: TEXTS.columns.from, drops: 5 },
  { title: TEXTS.columns.sha256, least: 8, drops: 2 },
] as const satisfies readonly Column[]

/** Reasons are in the last column, which then stays. */
const REASONS = { title: TEXTS.columns.sha256, least: 17 } as const

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
  const refusal = size_bytes === 0 ? TEXTS.fileEmpty : null
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
    TEXTS.from[from],
    refusal === null ? (sha256?.slice(0, 12) ?? '') : `(${refusal})`,
  ]
  return { cells: cells.map(printable), refusal }
}
