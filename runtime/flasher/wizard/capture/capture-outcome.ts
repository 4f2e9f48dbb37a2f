/** The two screens after a capture: the image that was made, or why there is none. */
import {
  type IdentityFiles,
  renderDestination,
  type CaptureOutcome,
  type CaptureDestination,
} from '#engine/capture/rules/capture.ts'
import { displayWidth } from '#kit/foundation/printable.ts'
import { renderDuration, renderExactSize, renderSize } from '#kit/foundation/size.ts'
import { fill } from '#kit/texts/text.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import { pad, wrapInFull } from '#kit/terminal/text/columns.ts'
import type { Voice } from '#kit/terminal/text/voice.ts'
import type { WizardState, WizardStep } from '../flow/flow.ts'
import { nameFiles } from './capture-text.ts'
import { askNext, listNext, QUIT } from '../screens/outcome.ts'
import { nextChoice } from '../screens/screen-layout.ts'
import type { WizardContext } from '../screens/pending-question.ts'

const { outcome: TEXTS, confirm: CONFIRM } = WIZARD_TEXTS.capture

const RETRY = nextChoice('b', ['back', 'again'], [TEXTS.choices.retry])
const AGAIN = nextChoice('b', ['back', 'disk'], [TEXTS.choices.again])

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
  const leaves = destination?.kind === 'upload' ? TEXTS.uploadLeaves : TEXTS.leaves
  if (kind === 'cancelled') {
    voice.warn(`${TEXTS.cancelled} ${leaves}`)
    return
  }
  voice.fail(fill(TEXTS.failed, { reason }))
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
    voice.success(fill(TEXTS.done, { disk, time: renderDuration(end.seconds) }))
    const { columns, rows } = context.painter.size()
    // A small screen has only room for the path.
    if (rows >= ROOMY_ROWS) voice.log('')
    voice.log(listFacts(end, renderDestination(destination), columns).join('\n'))
    const isLast = destination.kind === 'file' && end.identity.kind === 'absent'
    if (!isLast) voice.log('')
    if (destination.kind === 'upload') voice.info(TEXTS.waiting)
    warn(end.identity, voice)
  })
}

const ROOMY_ROWS = 16

function warn(identity: IdentityFiles, voice: Voice) {
  if (identity.kind === 'found') voice.warn(fill(TEXTS.found, nameFiles(identity)))
  if (identity.kind === 'possible') voice.warn(CONFIRM.possible)
}

function listFacts(
  { storedBytes, imageBytes, sha256 }: Extract<CaptureOutcome, { kind: 'done' }>,
  address: string,
  columns: number,
): readonly string[] {
  const size = fill(TEXTS.size, {
    stored: renderExactSize(storedBytes),
    unpacked: renderSize(imageBytes),
  })
  const { labels } = TEXTS
  const left = Math.max(...Object.values(labels).map(displayWidth)) + 4
  return [
    [labels.image, address],
    [labels.size, size],
    [labels.sha256, sha256],
  ].flatMap(([label = '', value = '']) =>
    wrapInFull(value, columns - 1 - left).map(
      (line, at) => pad(at === 0 ? `  ${label}` : '', left) + line,
    ),
  )
}
