/** `flasher push`: stores an image in an OCI registry. */
import { pushImage } from '#engine/pack/pusher.ts'
import type { PushStage } from '#engine/pack/rules/push.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { renderOrasRef } from '#kit/net/registry/rules/oras.ts'
import { createProgress } from '#flasher/text/progress.ts'
import { SUCCESS } from './rules/exit-codes.ts'
import { parsePushRequest, pushedFields, renderPushed } from './rules/requests.ts'
import type { CommandSession } from './session.ts'

/** Rejects with a Fault as `pushImage` does. */
export async function push(session: CommandSession): Promise<number> {
  const { given, environment, json, log, style, document } = session
  const request = parsePushRequest(given)
  if (!request.ok) {
    const { message, hint } = request.refusal
    throw new Fault('misuse', message, { hint })
  }
  const order = request.value
  const progress = createProgress('text', { ...environment, style, storedBytes: () => null })
  const where = renderOrasRef(order.ref)
  const onStage = (stage: PushStage) => {
    progress.clear()
    log.line(STAGES[stage](where))
  }
  const { signal } = environment
  const options = { signal, onStage, onProgress: progress.show }
  const pushed = await pushImage(environment, order, options).finally(progress.clear)
  if (!pushed.hasRanges) log.note(NO_RANGES)
  if (json) document({ pushed: pushedFields(order, pushed) })
  else environment.stdout.write(renderPushed(order, pushed))
  return SUCCESS
}

const STAGES: Readonly<Record<PushStage, (where: string) => string>> = {
  packing: () => 'Packing the image.',
  checking: () => 'Checking the frames of the image.',
  uploading: (where) => `Uploading to ${where}.`,
  again: () => 'The registry lost the upload. Starting it again.',
}

const NO_RANGES =
  'This registry has no byte ranges, so a flash reads the image from start to end, and the upload was not verified.'
