/** `flasher-cache add`, `list`, `fetch`, `remove`, `token`: commands for a running cache. */
import { Fault } from '#kit/foundation/fault.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import { renderJson } from '#kit/foundation/json-reader.ts'
import { renderFlaw } from '#engine/catalog/rules/manifest.ts'
import { type CacheClient, createCacheClient } from '#engine/catalog/cache-client.ts'
import { isManifestUrl } from '#cache/store/image-cache.ts'
import { readLocalToken } from '#fleet/access/tokens.ts'
import { readManifest } from '#engine/catalog/catalog-manifests.ts'
import { linger } from '#kit/host/watch.ts'
import { createLog } from '#kit/terminal/text/log.ts'
import { decideTerminalStyle, tableRoomOf } from '#kit/terminal/text/terminal-style.ts'
import { openVoice } from '#kit/terminal/text/voice.ts'
import { renderTable } from '#kit/terminal/text/columns.ts'
import { FAILED, SUCCESS } from '#kit/terminal/command/rules/command.ts'
import { LIST_COLUMNS, type CacheImage, parseListing, renderListed } from '#cache/rules/catalog.ts'
import { renderOrigin, decidePaths, readConfiguration } from './configuration.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'

/** Waits for the download of a single image. Rejects with a Fault where that fails. */
export async function add(environment: ProcessEnvironment, given: Arguments): Promise<number> {
  const client = await connect(environment, given)
  const [src = ''] = given.positionals
  if (given.switches.has('catalog') || isManifestUrl(src)) return addAll(environment, client, src)
  const { name, sha256, 'index-sha256': index_sha256 } = given.values
  const any_content = given.switches.has('any-content') ? true : undefined
  const added = await client.add({ src, name, sha256, index_sha256, any_content })
  const called = textIn(added, 'name')
  openVoice(environment.stdout, environment.env).success(`${called} added`)
  if (given.switches.has('no-fetch')) return SUCCESS
  await client.download(called, { force: false })
  return wait(environment, client, called)
}

/** Rejects with a Fault where no cache answers. */
export async function list(environment: ProcessEnvironment, given: Arguments): Promise<number> {
  const client = await connect(environment, given)
  const listing = await client.list()
  const { stdout, env } = environment
  const isExact = given.switches.has('bytes')
  const rows = parseListing(listing).map((image) => renderListed(image, isExact))
  stdout.write(
    given.switches.has('json')
      ? `${renderJson(listing)}\n`
      : renderTable(rows, LIST_COLUMNS, tableRoomOf(stdout, env)),
  )
  return SUCCESS
}

/** Rejects with a Fault where the download fails. */
export async function fetchImage(
  environment: ProcessEnvironment,
  given: Arguments,
): Promise<number> {
  const { client, name } = await connectFor(environment, given)
  await client.download(name, { force: true })
  return wait(environment, client, name)
}

/** `--force` also removes what machines are bound to. Rejects with a Fault. */
export async function remove(environment: ProcessEnvironment, given: Arguments): Promise<number> {
  const { client, name } = await connectFor(environment, given)
  await client.remove(name, { force: given.switches.has('force') })
  openVoice(environment.stdout, environment.env).success(`${name} removed`)
  return SUCCESS
}

/** Rejects with a Fault where the cache refuses. */
export async function makeToken(
  environment: ProcessEnvironment,
  given: Arguments,
): Promise<number> {
  const { client, name } = await connectFor(environment, given)
  const made = await client.makeUploadToken(name)
  const token = textIn(made, 'token')
  // Alone on its line, for a script.
  environment.stdout.write(given.switches.has('json') ? `${renderJson(made)}\n` : `${token}\n`)
  return SUCCESS
}

async function connectFor(environment: ProcessEnvironment, given: Arguments) {
  const [name = ''] = given.positionals
  return { client: await connect(environment, given), name }
}

async function connect(environment: ProcessEnvironment, given: Arguments): Promise<CacheClient> {
  const config = await readConfiguration(environment, given)
  const { host, port, token } = config.current().cache
  const own = token === '' ? await readLocalToken(decidePaths(config).token) : token
  return createCacheClient({ base: renderOrigin(host, port), token: own })
}

/** Reports those that are listed already or whose name is taken. */
async function addAll(
  environment: ProcessEnvironment,
  client: CacheClient,
  source: string,
): Promise<number> {
  const log = createLog({
    program: 'flasher-cache',
    stderr: environment.stderr,
    style: decideTerminalStyle(environment.env, environment.stderr.isTTY === true),
  })
  const { success } = openVoice(environment.stdout, environment.env)
  const { images, flaws } = await readManifest(source, { env: environment.env })
  for (const flaw of flaws) log.note(`${source}: ${renderFlaw(flaw)}`)
  let failures = flaws.length
  const listed = parseListing(await client.list())
  for (const { ref: _ref, line: _line, ...image } of images) {
    if (listed.some(({ name, src }) => name === image.name && src === image.src)) {
      success(`${image.name} is listed already`)
      continue
    }
    try {
      await client.add(image)
      success(`${image.name} added`)
    } catch (thrown) {
      if (!(thrown instanceof Fault) || thrown.code === 'upstream-failed') throw thrown
      failures += 1
      log.note(`${image.name}: ${thrown.message}`)
    }
  }
  return failures === 0 ? SUCCESS : FAILED
}

async function wait(
  environment: ProcessEnvironment,
  client: CacheClient,
  name: string,
): Promise<number> {
  let said = ''
  for (;;) {
    const image = find(await client.list(), name)
    const { words, isOver } = renderProgress(image)
    if (words !== said) environment.stdout.write(`${name}: ${words}\n`)
    said = words
    if (image.state === 'failed')
      throw new Fault('source-broken', image.error ?? 'the download failed')
    if (isOver) return SUCCESS
    await linger(500, environment.signal)
    if (environment.signal.aborted)
      throw new Fault('cancelled', 'no longer waiting; the download continues')
  }
}

function renderProgress({ state, bytes_done: done, size_bytes: size }: CacheImage) {
  const isOver = state === 'ready' && done === null
  if (done === null || size === null || size === 0) return { words: state, isOver }
  return { words: `${Math.floor((done / size) * 10) * 10}%`, isOver }
}

function find(listing: unknown, name: string): CacheImage {
  const image = parseListing(listing).find((one) => one.name === name)
  if (image === undefined) throw new Fault('not-found', `there is no entry named ${name}`)
  return image
}

function textIn(answer: unknown, field: string): string {
  const text = isRecord(answer) ? answer[field] : null
  if (typeof text === 'string') return text
  throw new Fault('upstream-failed', 'the cache sent an invalid response')
}
