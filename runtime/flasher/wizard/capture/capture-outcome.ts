/** The two screens after a capture: the image that was made, or why there is none. */
import {
  type IdentityFiles,
  renderDestination,
  type CaptureOutcome,
  type CaptureDestination,
} from '#engine/capture/rules/capture.ts'
import { renderDuration, renderExactSize, renderSize } from '#kit/foundation/size.ts'
import { pad, wrapInFull } from '#kit/terminal/text/columns.ts'
import type { Voice } from '#kit/terminal/text/voice.ts'
import type { WizardState, WizardStep } from '../flow/flow.ts'
import { nameFiles } from './capture-text.ts'
import { askNext, listNext, QUIT } from '../screens/outcome.ts'
import { nextChoice } from '../screens/screen-layout.ts'
import type { WizardContext } from '../screens/pending-question.ts'

const RETRY = nextChoice('b', ['back', 'again'], ['try again'])
const AGAIN = nextChoice('b', ['back', 'disk'], ['another disk'])

export async function showCaptureFailure(
  state: WizardState,
  context: WizardContext,
): Promise<WizardStep> {
  const { end, destination } = endOf(state)
  return await askNext(state, context, [RETRY, QUIT], (voice) => {
    if (end !== null && end.kind !== 'done') explain(end, destination, voice)
  })
}

const endOf = ({
  capture,
}: WizardState): Pick<NonNullable<WizardState['capture']>, 'end' | 'destination'> =>
  capture ?? { end: null, destination: null }

function explain(
  { kind, reason, hint }: Exclude<CaptureOutcome, { kind: 'done' }>,
  destination: CaptureDestination | null,
  voice: Voice,
) {
  const leaves =
    destination?.kind === 'upload'
      ? 'The disk is as it was. What the cache has received is removed after a day.'
      : 'Nothing is left of the image; the disk is as it was.'
  if (kind === 'cancelled') {
    voice.warn(`Cancelled. ${leaves}`)
    return
  }
  voice.fail(`The capture failed: ${reason}`)
  if (hint !== null) voice.info(hint)
  voice.warn(leaves)
}

export async function showCaptured(
  state: WizardState,
  context: WizardContext,
): Promise<WizardStep> {
  const { end, destination } = endOf(state)
  return await askNext(state, context, listNext(context, AGAIN), (voice) => {
    if (end?.kind !== 'done' || destination === null) return
    const disk = state.disks[0]?.path ?? ''
    voice.success(`Done. Captured ${disk} in ${renderDuration(end.seconds)}.`)
    const { columns, rows } = context.painter.size()
    // A small screen has only room for the path.
    if (rows >= ROOMY_ROWS) voice.log('')
    voice.log(listFacts(end, renderDestination(destination), columns).join('\n'))
    const isLast = destination.kind === 'file' && end.identity.kind === 'absent'
    if (!isLast) voice.log('')
    if (destination.kind === 'upload')
      voice.info(
        'Machines can have the image after an operator has accepted it on the page Images of the cache.',
      )
    warn(end.identity, voice)
  })
}

const ROOMY_ROWS = 16

function warn(identity: IdentityFiles, voice: Voice) {
  if (identity.kind === 'found')
    voice.warn(
      `The identity of this machine is in the image: ${nameFiles(identity)}. Machines that are flashed with it share it.`,
    )
  if (identity.kind === 'possible')
    voice.warn(
      'The identity of this machine may be in the image: SSH host keys, machine-id, random seed, leases.',
    )
}

function listFacts(
  { storedBytes, imageBytes, sha256 }: Extract<CaptureOutcome, { kind: 'done' }>,
  address: string,
  columns: number,
): readonly string[] {
  const size = `${renderExactSize(storedBytes)}, ${renderSize(imageBytes)} unpacked`
  const left = 'SHA-256'.length + 4
  return [
    ['Image', address],
    ['Size', size],
    ['SHA-256', sha256],
  ].flatMap(([label = '', value = '']) =>
    wrapInFull(value, columns - 1 - left).map(
      (line, at) => pad(at === 0 ? `  ${label}` : '', left) + line,
    ),
  )
}
