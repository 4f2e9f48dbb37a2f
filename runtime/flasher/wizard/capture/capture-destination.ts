/** The screens on which a person types where a captured image goes, and the token of an upload. */
import { printable } from '#kit/foundation/printable.ts'
import { joinImagePath } from '#engine/image/image-folder.ts'
import { isFolder } from '#kit/host/folders.ts'
import { wrapInFull } from '#kit/terminal/text/columns.ts'
import { decideDestination } from './destination.ts'
import type { WizardState, WizardStep } from '../flow/flow.ts'
import {
  askStill,
  backKey,
  QUIT_KEY,
  stepOf,
  type WizardContext,
} from '../screens/pending-question.ts'
import { fitted, inFull, type ScreenView } from '../screens/screen-layout.ts'

/** Enter alone takes the suggested name in the image root. */
export async function chooseDestination(
  state: WizardState,
  context: WizardContext,
): Promise<WizardStep> {
  const { imageRoot } = context.drawing.setting
  const name = state.capture?.name ?? ''
  const view = textView('Image', 'disk', (size) => [
    ...inFull(['Where does the image go? Enter alone takes this name:'], size),
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
          'The image cache takes the image with a one-time token.',
          `"flasher-cache token ${destination.name}" makes one, where the cache runs.`,
          ...(known === '' ? [] : ['Enter alone: the one in FLASHER_UPLOAD_TOKEN.']),
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
