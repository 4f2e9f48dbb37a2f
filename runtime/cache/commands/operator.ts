/** `flasher-cache add`, `list`, `fetch`, `remove`: what an operator tells a running cache. */
import { Fault } from '../../core/foundation/fault.ts'
import { renderJson } from '../../core/foundation/json-text.ts'
import { renderFlaw } from '../../core/catalog/manifest.ts'
import { type CacheClient, createCacheClient } from '../../services/net/cache-client.ts'
import { isManifestUrl } from '../../services/cache/catalog-imports.ts'
import { readLocalToken } from '../../services/cache/local-token.ts'
import { readManifest } from '../../services/catalog/catalog-manifests.ts'
import { createLog } from '../../terminal/text/log.ts'
import { decideLook } from '../../terminal/text/terminal-style.ts'
import { renderTable } from '../../terminal/text/table.ts'
import { FAILED, SUCCESS } from '../../core/command/server-exit.ts'
import { type ListedImage, parseListing, renderListed } from '../rules/listing.ts'
import { renderOrigin } from './reach.ts'
import { decidePaths, readConfiguration, type World } from './process-environment.ts'
import type { Arguments } from '../../terminal/command/dispatch.ts'

type Here = Pick<World<never>, 'env' | 'stdout' | 'stderr' | 'isRoot' | 'systemDir' | 'signal'>

export async function add(world: Here, given: Arguments): Promise<number> {
  const client = await connect(world, given)
  const [src = ''] = given.positionals
  if (given.switches.has('catalog') || isManifestUrl(src)) return addAll(world, client, src)
  const [name] = given.values['name'] ?? []
  const [sha256] = given.values['sha256'] ?? []
  const added = await client.add({ src, name, sha256 })
  const called = nameIn(added)
  world.stdout.write(`${called} is listed\n`)
  if (given.switches.has('no-fetch')) return SUCCESS
  await client.download(called, { force: false })
  return wait(world, client, called)
}

export async function list(world: Here, given: Arguments): Promise<number> {
  const client = await connect(world, given)
  const listing = await client.list()
  world.stdout.write(
    given.switches.has('json')
      ? `${renderJson(listing)}\n`
      : renderTable(parseListing(listing).map(renderListed), ['name', 'state', 'size', 'sha256']),
  )
  return SUCCESS
}

export async function fetchImage(world: Here, given: Arguments): Promise<number> {
  const client = await connect(world, given)
  const [name = ''] = given.positionals
  await client.download(name, { force: true })
  return wait(world, client, name)
}

export async function remove(world: Here, given: Arguments): Promise<number> {
  const client = await connect(world, given)
  const [name = ''] = given.positionals
  await client.remove(name, { force: given.switches.has('force') })
  world.stdout.write(`${name} was removed\n`)
  return SUCCESS
}

async function connect(world: Here, given: Arguments): Promise<CacheClient> {
  const config = await readConfiguration(world, given)
  const { host, port, token } = config.current().cache
  const own = token === '' ? await readLocalToken(decidePaths(config).token) : token
  return createCacheClient({ base: renderOrigin(host, port), token: own })
}

/** What is listed already, or has another's name, is said; the rest is added all the same. */
async function addAll(world: Here, client: CacheClient, source: string): Promise<number> {
  const log = createLog({
    program: 'flasher-cache',
    stderr: world.stderr,
    look: decideLook(world.env, world.stderr.isTTY === true),
  })
  const { images, flaws } = await readManifest(source, { env: world.env })
  for (const flaw of flaws) log.note(`${source}: ${renderFlaw(flaw)}`)
  let failures = flaws.length
  for (const { ref: _ref, line: _line, ...image } of images) {
    try {
      await client.add(image)
      world.stdout.write(`${image.name} is listed\n`)
    } catch (thrown) {
      if (!(thrown instanceof Fault) || thrown.code === 'upstream-failed') throw thrown
      failures += 1
      log.note(`${image.name}: ${thrown.message}`)
    }
  }
  return failures === 0 ? SUCCESS : FAILED
}

/** Says how far it is, on a line of its own each time a tenth is done. */
async function wait(world: Here, client: CacheClient, name: string): Promise<number> {
  let said = ''
  for (;;) {
    const image = find(await client.list(), name)
    const { words, isOver } = renderProgress(image)
    if (words !== said) world.stdout.write(`${name}: ${words}\n`)
    said = words
    if (image.state === 'failed') throw new Fault('source-broken', image.error ?? 'it failed')
    if (isOver) return SUCCESS
    await sleep(500)
    if (world.signal.aborted) throw new Fault('cancelled', 'the download goes on without us')
  }
}

const sleep = (milliseconds: number) =>
  new Promise<void>((resolve) => {
    setTimeout(resolve, milliseconds)
  })

function renderProgress({ state, bytesDone, sizeBytes }: ListedImage) {
  const isOver = state === 'ready' && bytesDone === null
  if (bytesDone === null || sizeBytes === null || sizeBytes === 0) return { words: state, isOver }
  return { words: `${Math.floor((bytesDone / sizeBytes) * 10) * 10}%`, isOver }
}

function find(listing: unknown, name: string): ListedImage {
  const image = parseListing(listing).find((one) => one.name === name)
  if (image === undefined) throw new Fault('not-found', `no entry is called ${name}`)
  return image
}

function nameIn(answer: unknown): string {
  const name =
    typeof answer === 'object' && answer !== null && 'name' in answer ? answer.name : null
  if (typeof name === 'string') return name
  throw new Fault('upstream-failed', 'the cache gave an answer that is none')
}
