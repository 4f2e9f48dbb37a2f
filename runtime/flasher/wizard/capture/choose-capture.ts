/** The screens before a capture: which disk, where its image goes and is called, and the token of an upload. */
import { offerSource } from '#flasher/text/rules/disk-offer.ts'
import { chooseDisk } from '#flasher/order/rules/flash-choice.ts'
import type { WizardState, WizardStep } from '../flow/flow.ts'
import {
  createDiskMenu,
  introduceDisks,
  readDiskList,
  type DiskList,
} from '../screens/choose-disk.ts'
import {
  askMeanwhile,
  stepOf,
  type WizardContext,
  inFull,
  type ScreenView,
  askStill,
  backKey,
  QUIT_KEY,
  fitted,
} from '../screens/screen.ts'
import { printable } from '#kit/foundation/printable.ts'
import { joinImagePath } from '#engine/image/image-folder.ts'
import { isFolder } from '#kit/host/folders.ts'
import { wrapInFull } from '#kit/terminal/text/columns.ts'
import { parseUploadAddress, type CaptureDestination } from '#engine/capture/rules/capture.ts'
import type { TargetDevice } from '#engine/disk/rules/disk.ts'

/** Also suggests a name that no local image has. */
export async function chooseSource(
  state: WizardState,
  context: WizardContext,
): Promise<WizardStep> {
  const list: DiskList = { disks: null, troubles: [] }
  const view = (): ScreenView => ({
    menu: createDiskMenu((list.disks ?? []).map(offerSource), 'back'),
    intro: (size) => [
      ...inFull(['Which disk? Nothing is written to it.'], size),
      '',
      ...introduceDisks(list, 'No disks detected.', context, size),
    ],
  })
  const asked = await askMeanwhile(state, view, context, (changed) =>
    readDiskList(list, context, changed),
  )
  if (asked.kind !== 'row') return stepOf(asked)
  const disk = list.disks?.[asked.index]
  if (disk === undefined) return { step: 'refresh' }
  // Without the list a taken name is refused later.
  const images = await context.listLocal().catch(() => [])
  const taken = images.map(({ name }) => name)
  return { step: 'capture-disk', disk: chooseDisk(disk), name: suggestName(disk.device, taken) }
}

/** Enter alone takes the suggested name in the image root. */
export async function chooseDestination(
  state: WizardState,
  context: WizardContext,
): Promise<WizardStep> {
  const { imageRoot } = context.drawing.setting
  const name = state.capture?.name ?? ''
  const view = textView('Image', 'disk', (size) => [
    ...inFull(['Where does the image go? Press Enter alone for this name:'], size),
    ...wrapInFull(joinImagePath(imageRoot, name), size.columns - 1 - INDENT.length).map(
      (line) => INDENT + line,
    ),
    '',
    ...fitted(['Or type one of these:', ...listKinds(imageRoot)], size, context.drawing),
  ])
  const typed = await askText(state, view, context)
  if (typeof typed !== 'string') return typed
  const options = { imageRoot, name, isFolder: typed !== '' && (await isFolder(typed)) }
  return { step: 'capture-destination', destination: decideDestination(typed, options) }
}

const INDENT = '  '

const listKinds = (folder: string): readonly string[] => [
  `${INDENT}a name       web.img.zst, in ${printable(folder)}`,
  `${INDENT}a path       /media/usb/web.img.zst`,
  `${INDENT}an address   http://cache:8081 (an image cache)`,
]

/** Enter alone takes the token of `FLASHER_UPLOAD_TOKEN`. */
export async function typeToken(state: WizardState, context: WizardContext): Promise<WizardStep> {
  const destination = state.capture?.destination
  if (destination?.kind !== 'upload') return { step: 'back' }
  const known = context.env['FLASHER_UPLOAD_TOKEN'] ?? ''
  const view = textView(
    'Token',
    'back',
    (size) =>
      inFull(
        [
          'The image cache requires a one-time token for the upload.',
          `"flasher-cache token ${destination.name}" makes one, where the cache runs.`,
          ...(known === '' ? [] : ['Press Enter alone to use the one in FLASHER_UPLOAD_TOKEN.']),
        ],
        size,
      ),
    true,
  )
  const typed = await askText(state, view, context)
  if (typeof typed !== 'string') return typed
  const token = typed === '' ? known : typed
  return token === ''
    ? { step: 'refresh' }
    : { step: 'capture-destination', destination: { ...destination, token } }
}

/** The text, empty by Enter alone; or the step of a key. */
async function askText(
  state: WizardState,
  view: ScreenView,
  context: WizardContext,
): Promise<string | WizardStep> {
  const asked = await askStill(state, view, context)
  if (asked.kind === 'text') return asked.text
  return asked.kind === 'key' && asked.key === SUGGESTED ? '' : stepOf(asked)
}

/** No key that is shown. */
const SUGGESTED = ''

const textView = (
  prompt: string,
  back: string,
  intro: ScreenView['intro'],
  isSecret = false,
): ScreenView => ({
  menu: {
    prompt,
    columns: [],
    rows: [],
    keys: [backKey(back), QUIT_KEY],
    enter: SUGGESTED,
    takesText: true,
    ...(isSecret ? { hidesText: true } : {}),
  },
  intro,
})

const ENDING = '.img.zst'

/** A folder gets the suggested name, a bare name lies in the image root; nothing typed is both. */
export function decideDestination(
  typed: string,
  {
    imageRoot,
    name,
    isFolder: isNamed,
  }: {
    readonly imageRoot: string
    /** For what names only a folder, or nothing. */
    readonly name: string
    readonly isFolder: boolean
  },
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
  if (isNamed || text.endsWith('/')) return { kind: 'file', path: joinImagePath(text, name) }
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
