/** `flasher-web flash`: has a running server flash a machine, for scripts, and says how that ended. */
import { Fault } from '#kit/foundation/fault.ts'
import { printable } from '#kit/foundation/printable.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import { createHttpClient, type HttpAnswer, type HttpClient } from '#kit/net/http-client.ts'
import { parseHttpTarget, type HttpTarget } from '#kit/net/rules/image-location.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import { describeFailure, renderRefusal } from '#kit/net/rules/network-failure.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import type { RunCommand } from '#kit/terminal/command/program.ts'
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import { readConfiguration } from '../assembly/configuration.ts'
import {
  decideExit,
  findRef,
  parseStreamEvent,
  renderFlashBody,
  renderRunLine,
} from './rules/flash-outcome.ts'

/** Servers send something every 15 seconds; a machine that is turned on first may take minutes. */
const STALL_MS = 10 * 60_000
const MAX_ANSWER_BYTES = 16 * 2 ** 20
const LONGEST_SECONDS = 3600
const USUAL_PORT = 8080

const STILL_ARMED = 'A machine that is already armed will still be flashed.'

interface ServerAccess {
  readonly client: HttpClient
  /** No slash at its end. */
  readonly server: string
  readonly token: string | null
}

/** Resolves to the exit code (docs/flash-jobs.md). */
export const flash: RunCommand<ProcessEnvironment> = async (environment, given) => {
  const { env, stdout, stderr, signal } = environment
  const [machine = ''] = given.positionals
  const mac = parseMac(machine)
  if (!mac.ok) throw new Fault('misuse', `${machine} is not a MAC address`)
  const options = readOptions(given)
  await using client = createHttpClient({ env, signal, stallMs: STALL_MS })
  const named = given.values['server'] ?? (await findOwnServer(environment, given))
  const server = named.replace(/\/+$/, '')
  const asked = { client, server, token: env['FLASHER_TOKEN'] ?? null }
  const image = given.values['image'] ?? null
  const ref = image === null ? null : await findImage(asked, image)
  const body = renderFlashBody({ ...options, ref })
  const answer = await ask(asked, `/machines/${mac.value}/flash`, JSON.stringify(body))
  const ended = await readEnd(answer, (line) => stderr.write(`${line}\n`)).catch(nameBreak)
  const outcome = String(ended['outcome'])
  if (given.switches.has('json')) stdout.write(`${JSON.stringify(ended, null, 2)}\n`)
  else stdout.write(`${printable(outcome)}\n`)
  const why = ended['detail']
  if (typeof why === 'string') stderr.write(`${printable(why)}\n`)
  return decideExit(outcome, options.until)
}

/** Reads only a configuration that is named, for scripts may run anywhere. */
export async function findOwnServer(
  environment: ProcessEnvironment,
  given: Arguments,
): Promise<string> {
  if ((given.lists['config'] ?? []).length === 0) return `http://127.0.0.1:${USUAL_PORT}`
  const config = await readConfiguration(environment, given)
  return `http://127.0.0.1:${config.current().server.port}`
}

function readOptions({ switches, values }: Arguments) {
  const until = values['until'] === 'booted' ? 'booted' : 'flashed'
  const limit = Number(values['limit'] ?? LONGEST_SECONDS)
  if (!Number.isInteger(limit) || limit < 1 || limit > LONGEST_SECONDS) {
    throw new Fault('misuse', `--limit must be 1 to ${LONGEST_SECONDS} seconds`)
  }
  const power: boolean | 'restart' = switches.has('restart') ? 'restart' : switches.has('power')
  const isAwaited = switches.has('wait') || until === 'booted'
  return { disk: values['disk'] ?? null, power, until, wait: isAwaited ? limit : 0 } as const
}

async function findImage(asked: ServerAccess, named: string): Promise<string> {
  const answer = await ask(asked, '/images', null)
  const ref = findRef(parseJson(await readText(answer)), named)
  if (ref !== null) return ref
  throw new Fault('not-found', `the server has no image, or several images, ${named}`, {
    hint: 'GET /images lists them; name one by its ref.',
  })
}

/** `body` null: GET. Rejects with the server's refusal. */
export async function ask(
  { client, server, token }: ServerAccess,
  path: string,
  body: string | null,
  method: 'GET' | 'POST' | 'DELETE' = body === null ? 'GET' : 'POST',
) {
  const target = readTarget(`${server}${path}`)
  const headers = {
    accept: 'text/event-stream, application/json',
    ...(body === null ? {} : { 'content-type': 'application/json' }),
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
  }
  const request = { method, headers, ...(body === null ? {} : { body }) }
  const answer = await client
    .fetch(target, { ...request, redirects: 'answer' })
    .catch(nameFailure(server))
  if (answer.status === 200 || isNotBooted(answer)) return answer
  const words = renderRefusal(answer.status, await readText(answer))
  const hint =
    answer.status === 401 ? 'Set FLASHER_TOKEN to a token with the scope flash.' : undefined
  throw new Fault('upstream-failed', `${path}: ${words}`, { hint })
}

function readTarget(url: string): HttpTarget {
  const target = parseHttpTarget(url)
  if (target === null)
    throw new Fault('misuse', '--server must be an address like http://host:port')
  return target
}

/** Armed, but could not be turned on: the body says why. */
const isNotBooted = ({ status, headers }: HttpAnswer): boolean =>
  status === 502 && headers['content-type']?.startsWith('application/json') === true

const nameFailure =
  (server: string) =>
  (thrown: unknown): never => {
    const failure = describeFailure(thrown)
    if (failure === null) throw thrown
    throw new Fault('upstream-failed', `the server at ${server}: ${failure.reason}`, {
      hint: 'Name another server with --server.',
    })
  }

function nameBreak(thrown: unknown): never {
  const failure = describeFailure(thrown)
  if (failure === null) throw thrown
  throw new Fault('upstream-failed', `the server: ${failure.reason}`, { hint: STILL_ARMED })
}

export async function readText(answer: HttpAnswer): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of answer.body()) {
    bytes += piece.length
    if (bytes > MAX_ANSWER_BYTES)
      throw new Fault('too-large', 'the answer of the server is too large')
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}

type Ended = Readonly<Record<string, unknown>>

/** From one document, or from events whose progress it prints. */
async function readEnd(answer: HttpAnswer, say: (line: string) => void): Promise<Ended> {
  const isStream = answer.headers['content-type']?.startsWith('text/event-stream') === true
  const ended = isStream ? await followEvents(answer, say) : parseJson(await readText(answer))
  if (isRecord(ended) && typeof ended['outcome'] === 'string') return ended
  throw new Fault('upstream-failed', 'the answer of the server has no outcome', {
    hint: STILL_ARMED,
  })
}

/** Resolves with the data of the stream's last event; null: it broke off. */
async function followEvents(answer: HttpAnswer, say: (line: string) => void): Promise<unknown> {
  let shown = ''
  for await (const { name, data } of readEvents(answer)) {
    if (name === 'end') return data
    const line = name === 'armed' ? 'armed' : (renderRunLine(data) ?? shown)
    if (line !== shown) say(line)
    shown = line
  }
  return null
}

async function* readEvents(answer: HttpAnswer) {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const piece of answer.body()) {
    const blocks = `${rest}${decoder.decode(piece, { stream: true })}`.split('\n\n')
    rest = blocks.pop() ?? ''
    if (rest.length > MAX_ANSWER_BYTES) throw new Fault('too-large', 'an event is too large')
    for (const block of blocks) {
      const event = parseStreamEvent(block)
      if (event !== null) yield event
    }
  }
}
