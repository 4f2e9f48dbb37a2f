/** `flasher capture`: makes an image of a disk. */
import {
  describeOrigin,
  parseUploadAddress,
  warnOfIdentity,
} from '#engine/capture/rules/capture.ts'
import { Fault } from '#kit/foundation/fault.ts'
import {
  checkFile,
  checkRoom,
  openCapture,
  runCapture,
  toFile,
  type Captured,
  type CaptureSink,
  type OpenedCapture,
} from '#engine/capture/capturer.ts'
import { isOrasUrl, parseOrasTarget, renderOrasRef } from '#kit/net/registry/rules/oras.ts'
import { renderSafeUrl } from '#kit/net/rules/image-location.ts'
import { createProgress } from '#flasher/text/progress.ts'
import { captureFields, renderCapture, type CaptureFindings } from './rules/report.ts'
import { SUCCESS } from './rules/exit-codes.ts'
import { packedFields, renderPacked, requireFramesName } from './pack.ts'
import type { CommandSession } from './session.ts'

interface CaptureOutput {
  /** Throws a refusal; returns a warning, or null. */
  readonly check: (opened: OpenedCapture) => string | null
  readonly open: (opened: OpenedCapture, findings: CaptureFindings) => Promise<CaptureSink>
  /** The permanent name at the destination; null: the one asked for. */
  readonly pinned?: () => string | null
}

/** `--dry-run`: only the checks. Rejects with a Fault. */
export async function capture(session: CommandSession): Promise<number> {
  const { given, environment, json, log, document } = session
  const { source = '', output: path = '' } = given.values
  const generalize = given.switches.has('generalize')
  const output = await chooseOutput(session)
  await using opened = await openCapture(environment, { source, generalize }, environment.signal)
  const { parts, ranges, device } = opened
  const room = output.check(opened)
  const warnings = [room, warnOfIdentity(parts, generalize)].flatMap((one) => one ?? [])
  const findings: CaptureFindings = {
    source,
    output: path,
    sizeBytes: device.sizeBytes,
    usedBytes: ranges.totalBytes,
    generalize,
    parts,
    warnings,
  }
  if (!json) environment.stdout.write(renderCapture(findings))
  warnings.forEach(log.note)
  const fields = captureFields(findings)
  if (given.switches.has('dry-run')) {
    if (json) document(fields)
    else environment.stdout.write('Dry run: nothing was written.\n')
    return SUCCESS
  }
  const captured = await run(session, opened, await output.open(opened, findings))
  const pinned = output.pinned?.() ?? null
  if (json) document({ ...fields, captured: describeCaptured(path, captured, pinned) })
  else environment.stdout.write(renderCaptured(path, captured, pinned))
  return SUCCESS
}

const describeCaptured = (path: string, captured: Captured, pinned: string | null) => ({
  ...packedFields(path, captured),
  ...(pinned === null ? {} : { pinned }),
})

const renderCaptured = (path: string, captured: Captured, pinned: string | null): string =>
  `${renderPacked(path, captured, '')}${pinned === null ? '' : `pinned        ${pinned}\n`}`

async function run(
  { given, environment, style }: CommandSession,
  opened: OpenedCapture,
  sink: CaptureSink,
) {
  const progress = createProgress('text', { ...environment, style, storedBytes: () => null })
  const level = Number(given.values['level'])
  const { signal } = environment
  const options = { level, signal, onProgress: progress.show }
  return await runCapture(opened, sink, options).finally(progress.clear)
}

async function chooseOutput(session: CommandSession): Promise<CaptureOutput> {
  const { given, environment } = session
  const { output: path = '' } = given.values
  if (isOrasUrl(path)) return await chooseRegistry(session, path)
  requireFramesName(path)
  const upload = parseUploadAddress(path)
  if (upload !== null) {
    const { env, signal } = environment
    const token = given.values['token'] ?? env['FLASHER_UPLOAD_TOKEN'] ?? ''
    if (token === '') throw new Fault('misuse', 'an upload requires a token', { hint: TOKEN })
    return {
      check: () => null,
      async open(opened, { generalize, warnings }) {
        const { toUpload } = await import('#engine/capture/upload-client.ts')
        const { source } = describeOrigin(opened, generalize)
        return toUpload({ ...upload, token, source, env, signal }, warnings)
      },
    }
  }
  const { freeBytes } = await checkFile(path)
  return {
    check: (opened) => checkRoom(opened, freeBytes),
    open: async () => toFile(path, environment.env),
  }
}

async function chooseRegistry(
  { environment, log }: CommandSession,
  target: string,
): Promise<CaptureOutput> {
  const parsed = parseOrasTarget(target)
  if (!parsed.ok) throw new Fault('misuse', `${parsed.refusal}: ${renderSafeUrl(target)}`)
  const ref = parsed.value
  const { env, signal } = environment
  const { checkNoTag, toRegistry } = await import('#engine/capture/registry-sink.ts')
  await checkNoTag({ ref, env, signal })
  let pinned: string | null = null
  return {
    check: () => null,
    pinned: () => pinned,
    open: async () =>
      toRegistry({
        ref,
        env,
        signal,
        onAgain: () => log.note('The registry lost the upload. Reading the disk again.'),
        onUnread: () => log.note(UNREAD),
        onStored(digest) {
          pinned = renderOrasRef({ ...ref, version: { kind: 'digest', digest } })
        },
      }),
  }
}

const UNREAD =
  'This registry has no byte ranges, so a flash reads the image from start to end, and the upload was not verified.'
const TOKEN = 'Create one with "flasher-cache token NAME" and put it into FLASHER_UPLOAD_TOKEN.'
