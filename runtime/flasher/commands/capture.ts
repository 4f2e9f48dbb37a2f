/** `flasher capture`: makes an image of a disk. */
import {
  describeOrigin,
  parseUploadAddress,
  warnOfIdentity,
} from '../../engine/capture/rules/capture.ts'
import { Fault } from '../../kit/foundation/fault.ts'
import {
  checkFile,
  checkRoom,
  openCapture,
  runCapture,
  toFile,
  type CaptureSink,
  type OpenedCapture,
} from '../../engine/capture/capturer.ts'
import { createProgress } from '../text/progress.ts'
import { findingsFields, renderFindings, type CaptureFindings } from './rules/capture-report.ts'
import { SUCCESS } from './rules/exit-codes.ts'
import { packedFields, renderPacked, requireFramesName } from './packed-image.ts'
import type { CommandSession } from './session.ts'

interface CaptureOutput {
  /** Looks whether what was found can be taken; what should be known of it. */
  readonly check: (opened: OpenedCapture) => string | null
  readonly open: (opened: OpenedCapture, findings: CaptureFindings) => Promise<CaptureSink>
}

/**
 * Runs the command, or with `--dry-run` only its checks, and returns the exit code. Rejects with a
 * Fault where the disk cannot be captured or the image not be stored.
 */
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
  if (!json) environment.stdout.write(renderFindings(findings))
  warnings.forEach(log.note)
  const fields = findingsFields(findings)
  if (given.switches.has('dry-run')) {
    if (json) document(fields)
    else environment.stdout.write('Dry run: nothing was written.\n')
    return SUCCESS
  }
  const captured = await run(session, opened, await output.open(opened, findings))
  if (json) document({ ...fields, captured: packedFields(path, captured) })
  else environment.stdout.write(renderPacked(path, captured, ''))
  return SUCCESS
}

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

async function chooseOutput({ given, environment }: CommandSession): Promise<CaptureOutput> {
  const { output: path = '' } = given.values
  requireFramesName(path)
  const upload = parseUploadAddress(path)
  if (upload !== null) {
    const { env, signal } = environment
    const token = given.values['token'] ?? env['FLASHER_UPLOAD_TOKEN'] ?? ''
    if (token === '') throw new Fault('misuse', 'an upload needs a --token', { hint: TOKEN })
    return {
      check: () => null,
      async open(opened, { generalize, warnings }) {
        const { toUpload } = await import('../../engine/capture/upload-client.ts')
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

const TOKEN = 'Put it into FLASHER_UPLOAD_TOKEN. The cache makes one: "flasher-cache token NAME".'
