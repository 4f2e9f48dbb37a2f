/** Images that can be chosen, this machine's first, and why some cannot. Pure. */
import { tellArch } from '../../../core/catalog.ts'
import type { CatalogImage } from '../../../core/catalog-source.ts'
import type { ImageRow } from '../../../core/image.ts'
import { printable } from '../../../core/printable.ts'
import { refOf } from '../../../core/ref.ts'
import { renderSize } from '../../../core/size.ts'
import type { Column } from '../../../terminal/columns.ts'
import type { MenuRow } from '../../../terminal/menu.ts'
import type { ImageChoice } from './start.ts'

export interface ImageOffer {
  readonly choice: ImageChoice
  readonly arch: string | null
  readonly from: 'local' | 'remote'
  /** Why it cannot be chosen; null: it can. */
  readonly refusal: string | null
}

export const IMAGE_COLUMNS: readonly Column[] = [
  { title: 'Name', least: 20, cut: 'middle' },
  { title: 'Size', side: 'right' },
  { title: 'Format', drops: 1 },
  { title: 'Arch', drops: 2 },
  { title: 'From', drops: 3 },
  { title: 'SHA-256', least: 17 },
]

/** An image that lies here and is in the catalog too is offered once, from here. */
export function listImageOffers(
  local: readonly ImageRow[],
  catalog: readonly CatalogImage[],
): readonly ImageOffer[] {
  const here = local.map(offerLocal)
  const seen = new Set(here.map(({ choice }) => choice.ref).filter((ref) => ref !== null))
  const there = catalog.filter(({ ref, location }) => {
    const isHere = here.some(({ choice }) => choice.location === location)
    const isNew = !isHere && (ref === null || !seen.has(ref))
    if (ref !== null) seen.add(ref)
    return isNew
  })
  return [...here, ...there.map(offerRemote)]
}

function offerLocal({ name, path, format, size_bytes }: ImageRow): ImageOffer {
  const ref = refOf(`file://${path}`)
  const choice = {
    name,
    location: path.startsWith('/') ? path : `./${path}`,
    format,
    sizeBytes: size_bytes,
    // What lies beside it says so, and is read before the flash.
    sha256: null,
    ref: ref.ok ? ref.value : null,
  }
  const refusal = size_bytes === 0 ? 'the file is empty' : null
  return { choice, arch: tellArch(null, [name]), from: 'local', refusal }
}

function offerRemote(image: CatalogImage): ImageOffer {
  const { name, location, format, sizeBytes, sha256, ref, arch, obstacle } = image
  const choice = { name, location, format, sizeBytes, sha256, ref }
  return { choice, arch, from: isHere(location) ? 'local' : 'remote', refusal: obstacle }
}

const isHere = (location: string) => !/^[a-z][a-z0-9+.-]*:\/\//i.test(location)

/** One row of the list; the reason stands where a digest would. */
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
