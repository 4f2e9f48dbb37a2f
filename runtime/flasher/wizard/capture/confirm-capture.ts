/** The screens of a capture: what is read and where it goes, the capture itself, and how it ended. */
import { hintOf, renderError, Fault } from '#kit/foundation/fault.ts'
import type { MenuKey } from '#kit/terminal/prompt/menu.ts'
import type { WizardState, WizardStep } from '../flow/flow.ts'
import {
  askMeanwhile,
  NO_KEY,
  QUIT_KEY,
  type WizardContext,
  type ScreenView,
  type Drawing,
  nextChoice,
} from '../screens/screen.ts'
import { renderWaiting } from '#flasher/text/rules/flash-text.ts'
import type { WriteProgress } from '#engine/flash/rules/flash-plan.ts'
import { printable } from '#kit/foundation/printable.ts'
import {
  renderDuration,
  renderSize,
  renderDiskSize,
  renderExactSize,
} from '#kit/foundation/size.ts'
import {
  type OpenedCapture,
  checkFile,
  checkRoom,
  openCapture,
  runCapture,
  toFile,
  type CaptureSink,
} from '#engine/capture/capturer.ts'
import { renderBar, createProgress } from '#flasher/text/progress.ts'
import {
  renderDestination,
  type CaptureOutcome,
  CAPTURE_LEVEL,
  decideIdentity,
  describeOrigin,
  type CaptureDestination,
  type CapturedPart,
  type IdentityFiles,
} from '#engine/capture/rules/capture.ts'
import { openProgressScreen, askNext, listNext, QUIT } from '../screens/flashing.ts'
import { toUpload } from '#engine/capture/upload-client.ts'
import type { Environment } from '#kit/host/shell.ts'
import type { DiskChoice } from '#flasher/order/rules/flash-choice.ts'
import { fitLines, layOut, type Column, pad, wrapInFull } from '#kit/terminal/text/columns.ts'
import { renderVoice, type Voice } from '#kit/terminal/text/voice.ts'

/** The screen of a capture that runs: a bar with progress, rate and time left; Ctrl-C cancels. */
interface ShownCapture {
  phase: string
  progress: WriteProgress | null
  storedBytes: number
}

async function runCapturing(
  state: WizardState,
  chosen: ChosenCapture,
  opened: OpenedCapture,
  context: WizardContext,
): Promise<CaptureOutcome> {
  const { env, isRoot, style } = context
  const cancelling = new AbortController()
  const signal = AbortSignal.any([context.signal, cancelling.signal])
  const shown: ShownCapture = {
    phase: 'reading the disk',
    progress: null,
    storedBytes: 0,
  }
  using screen = openProgressScreen(state, context, {
    render: (seconds, columns) => renderBody(chosen, shown, context, { seconds, columns }),
    phase: () => shown.phase,
    cancel() {
      shown.phase = 'cancelling ...'
      cancelling.abort()
    },
  })
  const log = style.tty ? null : createLines(context)
  return await makeCapture(
    chosen,
    opened,
    { env, isRoot, signal },
    {
      onProgress(progress) {
        shown.progress = progress
        log?.show(progress)
      },
      onStored(bytes) {
        shown.storedBytes = bytes
      },
      onSent() {
        shown.phase = 'the image cache verifies the image ...'
        screen.draw()
      },
    },
  )
}

/** For terminals that cannot redraw. */
const createLines = ({ stdout, style, now }: WizardContext) =>
  createProgress('text', { stdout, stderr: stdout, style, now, storedBytes: () => null })

function renderBody(
  { disk, destination }: ChosenCapture,
  { phase, progress, storedBytes }: ShownCapture,
  { drawing: { ink }, style }: WizardContext,
  { seconds, columns }: { readonly seconds: number; readonly columns: number },
): readonly string[] {
  const time = renderDuration(seconds)
  const bar = { columns, unicode: style.unicode, storedBytes: null, isReading: true }
  return [
    ink.strong(printable(`${disk.path} -> ${renderDestination(destination)}`)),
    '',
    progress === null ? '' : renderBar(progress, bar),
    '',
    renderWaiting(phase, progress),
    ink.faint(`${renderSize(storedBytes)} of the image made, ${time} so far`),
    '',
    ink.faint('Ctrl-C cancels and removes the image. ? shows help.'),
  ]
}

/** The disk that was looked at stays held until the image is complete. */
export async function confirmCapture(
  state: WizardState,
  context: WizardContext,
): Promise<WizardStep> {
  const [disk] = state.disks
  const destination = state.capture?.destination ?? null
  if (disk === undefined || destination === null) return { step: 'back' }
  for (let generalize = false; ; generalize = !generalize) {
    const step = await askAndRun(state, { disk, destination, generalize }, context)
    if (step !== null) return step
  }
}

/** Null: ask again with the other answer. */
async function askAndRun(
  state: WizardState,
  chosen: ChosenCapture,
  context: WizardContext,
): Promise<WizardStep | null> {
  await using held = new AsyncDisposableStack()
  let known: CaptureKnown = { ...chosen, checked: null, reasons: null }
  let looking = Promise.resolve()
  const view = () => viewOf(known, context)
  const asked = await askMeanwhile(state, view, context, (changed, signal) => {
    looking = checkCapture(chosen, { ...context, signal }).then(
      (checked) => {
        known = { ...known, checked: held.use(checked), reasons: [] }
      },
      (thrown) => {
        known = { ...known, reasons: [renderError(thrown), hintOf(thrown) ?? []].flat() }
      },
    )
    return looking.then(changed)
  })
  // The disk must be free before it is opened anew.
  await looking
  if (asked.kind !== 'key' || asked.key === 'q') return { step: 'quit' }
  if (asked.key === 'g') return null
  const { checked } = known
  if (asked.key !== 'y' || checked === null) return { step: 'back' }
  return { step: 'captured', end: await runCapturing(state, chosen, checked.opened, context) }
}

/** One key, but one that nothing else on the way here asks for. */
const YES: MenuKey = { key: 'y', words: ['yes'], does: 'CAPTURE', isInstant: true }

function viewOf(known: CaptureKnown, { drawing }: WizardContext): ScreenView {
  const isFree = known.reasons?.length === 0
  const does = known.generalize ? 'keep identity' : 'clear identity'
  const clear: MenuKey = { key: 'g', words: ['generalize'], does, isInstant: true }
  return {
    menu: {
      prompt: isFree ? 'Capture' : 'Back',
      columns: [],
      rows: [],
      keys: [...(isFree ? [YES] : []), ...(canClear(known) ? [clear] : []), NO_KEY, QUIT_KEY],
      enter: 'b',
    },
    intro: (size, room) => renderCapture(known, drawing, { ...size, room }),
  }
}

// Opens the disk that a person chose to capture, and makes its image; says how it ended.

interface ChosenCapture {
  readonly disk: DiskChoice
  readonly destination: CaptureDestination
  readonly generalize: boolean
}

interface CaptureEnvironment {
  readonly env: Environment
  readonly isRoot: boolean
  readonly signal: AbortSignal
}

/** The disk is held until it is disposed of. */
interface CheckedCapture extends AsyncDisposable {
  readonly opened: OpenedCapture
  /** A warning about room for the image; null: there is plenty. */
  readonly room: string | null
}

/** Rejects with a Fault where the disk cannot be captured, or the image surely not be stored. */
async function checkCapture(
  { disk, destination, generalize }: ChosenCapture,
  { env, isRoot, signal }: CaptureEnvironment,
): Promise<CheckedCapture> {
  const file = destination.kind === 'file' ? await checkFile(destination.path) : null
  await using undo = new AsyncDisposableStack()
  const order = { source: disk.path, chosen: disk.identity, generalize }
  const opened = undo.use(await openCapture({ env, isRoot }, order, signal))
  const room = file === null ? null : checkRoom(opened, file.freeBytes)
  const held = undo.move()
  return { opened, room, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

interface CaptureEvents {
  readonly onProgress: (progress: { readonly event: 'writing' } & WriteProgress) => void
  /** Bytes of the image so far, compressed. */
  readonly onStored: (bytes: number) => void
  /** All is sent; the cache verifies it. */
  readonly onSent: () => void
}

/** Never throws: the outcome holds the reason of a failure. */
async function makeCapture(
  chosen: ChosenCapture,
  opened: OpenedCapture,
  { env, signal }: CaptureEnvironment,
  { onProgress, onStored, onSent }: CaptureEvents,
): Promise<CaptureOutcome> {
  const { generalize } = chosen
  const identity = decideIdentity(opened.parts)
  try {
    const sink = openSink(chosen, opened, { env, signal, onSent })
    const made = await runCapture(opened, counted(sink, onStored), {
      level: CAPTURE_LEVEL,
      signal,
      onProgress,
    })
    return { ...made, kind: 'done', identity: generalize ? { kind: 'absent' } : identity }
  } catch (thrown) {
    const isCancelled = signal.aborted && !(thrown instanceof Fault)
    return {
      kind: isCancelled ? 'cancelled' : 'failed',
      reason: renderError(thrown),
      hint: hintOf(thrown) ?? null,
    }
  }
}

function openSink(
  { destination, generalize }: ChosenCapture,
  opened: OpenedCapture,
  context: Pick<CaptureEnvironment, 'env' | 'signal'> & Pick<CaptureEvents, 'onSent'>,
): CaptureSink {
  if (destination.kind === 'file') return toFile(destination.path, context.env)
  const { base, name } = destination
  const { source, warnings } = describeOrigin(opened, generalize)
  return toUpload({ base, name, token: destination.token ?? '', source, ...context }, warnings)
}

const counted =
  (sink: CaptureSink, onStored: CaptureEvents['onStored']): CaptureSink =>
  (write) => {
    let stored = 0
    return sink((put) =>
      write(async (bytes) => {
        await put(bytes)
        stored += bytes.length
        onStored(stored)
      }),
    )
  }

// The text of a capture's confirm screen, and what is said of the files that identify a machine. Pure.

interface CaptureKnown extends ChosenCapture {
  readonly checked: Pick<CheckedCapture, 'opened' | 'room'> | null
  /** Null: still being looked at. */
  readonly reasons: readonly string[] | null
}

const canClear = ({ checked, generalize }: Pick<CaptureKnown, 'checked' | 'generalize'>) =>
  generalize || (checked !== null && decideIdentity(checked.opened.parts).kind !== 'absent')

function renderCapture(
  known: CaptureKnown,
  { ink, unicode }: Drawing,
  {
    columns,
    room,
  }: {
    readonly columns: number
    /** Rows for all of it. */
    readonly room: number
  },
): readonly string[] {
  const { checked, reasons } = known
  const say = (speak: (voice: Voice) => void) => renderVoice({ ink, unicode, columns }, speak)
  if (reasons === null) return say(({ start }) => start('looking at what is on the disk ...'))
  if (checked === null) {
    return say(({ fail }) => fail(['Rejected:', ...reasons].join('\n')))
  }
  const facts = say((voice) => describe(known, checked, voice))
  const warnings = say((voice) => warn(known, checked, voice))
  const [head = '', ...rows] = layParts(checked.opened.parts, { unicode, width: columns - 1 })
  const spaced = [
    ...facts,
    '',
    ink.faint(head),
    ...(warnings.length === 0 ? [] : ['']),
    ...warnings,
  ]
  const left = room - spaced.length
  if (left >= Math.min(MIN_ROWS, rows.length)) {
    return spaced.toSpliced(facts.length + 2, 0, ...fitLines(rows, left, INDENT))
  }
  // What the image holds of the machine counts more than how it is read.
  const promise = say(({ info }) => info(promiseOf(known)))
  const forms = [
    [...facts, ...warnings],
    [...promise, ...warnings],
  ]
  return forms.find(({ length }) => length <= room) ?? warnings
}

/** Rows of partitions. */
const MIN_ROWS = 2

const promiseOf = ({ disk }: CaptureKnown) =>
  `${disk.path} is opened read-only: nothing on it changes.`

function describe(known: CaptureKnown, { opened }: Pick<CheckedCapture, 'opened'>, voice: Voice) {
  const used = renderSize(opened.ranges.totalBytes)
  voice.info(promiseOf(known))
  voice.info(
    `${used} of ${renderDiskSize(opened.device.sizeBytes)} will be read. Compression makes the image smaller.`,
  )
}

function warn(
  { generalize }: CaptureKnown,
  { opened, room }: Pick<CheckedCapture, 'opened' | 'room'>,
  voice: Voice,
) {
  if (room !== null) voice.warn(room)
  const identity = decideIdentity(opened.parts)
  if (generalize) {
    const isFound = identity.kind === 'found'
    voice.info(
      isFound
        ? `Cleared in the image, not on the disk: ${nameFiles(identity)}.`
        : 'Found no files that identify this machine.',
    )
  } else if (identity.kind === 'found')
    voice.warn(
      `The image would contain the identity of this machine: ${nameFiles(identity)}. Press g to clear it there.`,
    )
  else if (identity.kind === 'possible') voice.warn(MAYBE_IDENTIFIED)
}

const MAYBE_IDENTIFIED =
  'The image may contain the identity of this machine: SSH host keys, machine-id, random seed, leases.'

const KINDS = [
  [/\/machine-id$/, 'machine-id'],
  [/\/ssh_host_/, 'SSH host keys'],
  [/\/random-seed$/, 'random seed'],
  [/./, 'network leases and keys'],
] as const

/** `machine-id, SSH host keys` instead of each path. */
const nameFiles = ({ paths }: Extract<IdentityFiles, { kind: 'found' }>): string =>
  [...new Set(paths.flatMap((path) => KINDS.find(([names]) => names.test(path))?.[1] ?? []))].join(
    ', ',
  )

const COLUMNS: readonly Column[] = [
  { title: 'Partition' },
  { title: 'Size', side: 'right' },
  { title: 'Type', drops: 1 },
  { title: 'Read', least: 12 },
]

function layParts(
  parts: readonly CapturedPart[],
  { unicode, width }: { readonly unicode: boolean; readonly width: number },
): readonly string[] {
  const { head, lines } = layOut(COLUMNS, parts.map(renderPart), width - INDENT.length, unicode)
  return [head, ...lines].map((line) => INDENT + line)
}

const INDENT = '  '

const renderPart = ({ number, type, bytes, usedBytes, whole }: CapturedPart): readonly string[] =>
  [
    number === 0 ? 'no table' : String(number),
    renderSize(bytes),
    type ?? 'unknown',
    whole === null ? `used blocks: ${renderSize(usedBytes)}` : `all of it: ${whole}`,
  ].map(printable)

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
      ? 'The disk is unchanged. The cache removes the partial upload after a day.'
      : 'The image was removed, and the disk is unchanged.'
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
        'An operator has to accept the image on the Images page of the cache before machines can use it.',
      )
    warnOfIdentity(end.identity, voice)
  })
}

const ROOMY_ROWS = 16

function warnOfIdentity(identity: IdentityFiles, voice: Voice) {
  if (identity.kind === 'found')
    voice.warn(
      `The image contains the identity of this machine: ${nameFiles(identity)}. All machines that are flashed with it will share it.`,
    )
  if (identity.kind === 'possible') voice.warn(MAYBE_IDENTIFIED)
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
