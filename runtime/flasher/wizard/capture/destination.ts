/** Where a captured image goes and what it is called, as it was typed or by default. Pure. */
import { parseUploadAddress, type CaptureDestination } from '#engine/capture/rules/capture.ts'
import type { TargetDevice } from '#engine/disk/rules/disk.ts'
import { joinImagePath } from '#engine/image/image-folder.ts'

const ENDING = '.img.zst'

interface DestinationOptions {
  readonly imageRoot: string
  /** For what names only a folder, or nothing. */
  readonly name: string
  readonly isFolder: boolean
}

/** A folder gets the suggested name, a bare name lies in the image root; nothing typed is both. */
export function decideDestination(
  typed: string,
  { imageRoot, name, isFolder }: DestinationOptions,
): CaptureDestination {
  const text = typed.trim()
  const upload = parseUploadAddress(text)
  if (upload !== null) {
    const isCache = upload.name === '' || upload.name === CAPTURES
    const base = isCache && !upload.base.endsWith(`/${CAPTURES}`) ? `/${CAPTURES}` : ''
    return {
      kind: 'upload',
      base: `${upload.base}${base}`,
      name: isCache ? name : complete(upload.name),
      token: null,
    }
  }
  if (text === '') return { kind: 'file', path: joinImagePath(imageRoot, name) }
  if (isFolder || text.endsWith('/')) return { kind: 'file', path: joinImagePath(text, name) }
  const path = complete(text)
  return { kind: 'file', path: path.includes('/') ? path : joinImagePath(imageRoot, path) }
}

/** Before the image's name in a cache's address. */
const CAPTURES = 'captures'

function complete(name: string): string {
  if (name.endsWith(ENDING)) return name
  return name.endsWith('.img') ? `${name}.zst` : `${name}${ENDING}`
}

const MAX_NAME = 60

/** Such as `samsung-ssd-980-s5gx.img.zst`, with a number where an image has that name. */
export function suggestName(
  { node, model, identity }: Pick<TargetDevice, 'node' | 'model' | 'identity'>,
  taken: readonly string[],
): string {
  const known = [model, identity.serial].filter(Boolean).join(' ')
  const slug = (known === '' ? node.slice(node.lastIndexOf('/') + 1) : known)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._]+/g, '-')
    .replaceAll(/^[-.]+|[-.]+$/g, '')
    .slice(0, MAX_NAME)
  const base = slug === '' ? 'disk' : slug
  const names = new Set(taken)
  let name = `${base}${ENDING}`
  for (let number = 2; names.has(name); number += 1) name = `${base}-${number}${ENDING}`
  return name
}
