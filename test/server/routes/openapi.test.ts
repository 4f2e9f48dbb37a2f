/** The API document, held against what the server really answers. */
import { request as httpRequest } from 'node:http'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import * as z from 'zod'
import { createServerHome, login, passwordIn } from '#test/support/server/flasher-web.ts'
import { createTestServer } from '#test/support/server/server.ts'

const test = suite('the API document')

const DocumentSchema = z.object({
  servers: z.array(z.object({ url: z.string() })),
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.object({
        responses: z.record(z.string(), z.object({ description: z.string() })),
      }),
    ),
  ),
})

test('names the server: by its public address, else relative to itself', async () => {
  for (const publicUrl of [null, 'https://lab.example']) {
    await using server = await createTestServer({
      env: { FLASHER_SERVER_PUBLIC_URL: publicUrl ?? '' },
    })
    const { servers } = DocumentSchema.parse(await (await server.request('/openapi.json')).json())
    assert.equal(servers, [{ url: publicUrl ?? '/' }])
  }
})

interface Probe {
  /** What stands in the place of each parameter. */
  readonly named?: string
  readonly query?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly isAnonymous?: true
}

const JSON_TYPE = { 'content-type': 'application/json' }
const MACHINE = '52:54:00:12:34:56'
/** Another one for each operation: some put it on record. */
const UNKNOWN = '52:54:00:99:99:'

/** Each is sent to every operation. */
const PROBES: readonly Probe[] = [
  { isAnonymous: true },
  { headers: { authorization: 'Bearer nobody' }, isAnonymous: true },
  { headers: { host: 'a b' } },
  { headers: { 'sec-fetch-site': 'cross-site' } },
  {},
  { named: 'nothing-like-it' },
  { named: '..%2Fx' },
  { named: 'v9.9.9' },
  { named: UNKNOWN },
  { query: '?limit=x&state=x&since=x' },
  { headers: { range: 'bytes=99999999-', 'if-match': '"other"' } },
  { headers: JSON_TYPE, body: '{' },
  { headers: JSON_TYPE, body: '[]' },
  { headers: JSON_TYPE, body: '{}' },
  { headers: JSON_TYPE, body: '{"ids":[1]}' },
  { headers: JSON_TYPE, body: '{"status":"done"}' },
  { headers: JSON_TYPE, body: '{"status":"done"}', named: UNKNOWN },
  { headers: JSON_TYPE, body: '{"disks":[]}', named: UNKNOWN },
  { headers: JSON_TYPE, body: '{"name":"x.img.zst"}', named: UNKNOWN },
  { headers: JSON_TYPE, body: '{"entry":"x"}', named: UNKNOWN },
  { headers: JSON_TYPE, body: '{"name":"x","scopes":["read"]}' },
  { headers: { 'content-type': 'image/png' }, body: 'x' },
  { headers: { ...JSON_TYPE, 'content-encoding': 'gzip' }, body: '{}' },
  // This body is refused before a byte of it is read.
  { headers: { 'content-length': '999999999999' } },
]

/** What the probes bring about wherever it is said; the others need a state of their own. */
const PROVOKED = ['400', '401', '403', '404', '413', '415', '422']

/** The status alone; streams are left at once. */
function ask(url: string, method: string, { headers = {}, body }: Probe): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest(url, { method, headers, agent: false }, (answer) => {
      resolve(answer.statusCode ?? 0)
      asked.destroy()
    })
    asked.on('error', reject)
    if (headers['content-length'] === undefined) asked.end(body)
    else asked.flushHeaders()
  })
}

/** Statuses of one operation. */
interface Answers {
  readonly told: ReadonlySet<string>
  readonly seen: ReadonlySet<string>
}

interface Operation {
  /** The path with its parameters in braces, behind the address of its server. */
  readonly template: string
  readonly method: string
  readonly cookie: string
  /** A machine that nothing else speaks of. */
  readonly unknown: string
}

async function send(operation: Operation, probe: Probe): Promise<string> {
  const { template, method, cookie, unknown } = operation
  const named = probe.named === UNKNOWN ? unknown : probe.named
  const target = template.replaceAll(
    /\{(\w+)\}/g,
    (_, name: string) => named ?? (name === 'mac' ? MACHINE : '1'),
  )
  const headers = { ...(probe.isAnonymous ? {} : { cookie }), ...probe.headers }
  return String(await ask(`${target}${probe.query ?? ''}`, method, { ...probe, headers }))
}

async function sendAll(operation: Operation): Promise<ReadonlySet<string>> {
  const seen = new Set<string>()
  for (const probe of PROBES) {
    // None is expected with a GET, so the document does not speak of its length.
    const hasLength = probe.headers?.['content-length'] !== undefined
    if (operation.method !== 'GET' || !hasLength) seen.add(await send(operation, probe))
  }
  return seen
}

/** By operation: what a server says of it, and what it answered. */
async function probeServer(env: Readonly<Record<string, string>>) {
  await using home = await createServerHome()
  await using server = await home.start([], env)
  const { cookie } = await login(server.url, passwordIn(server.stdout()))
  const { paths } = DocumentSchema.parse(await (await fetch(`${server.url}/openapi.json`)).json())
  await fetch(`${server.url}/pxe/${MACHINE}`)
  const answers = new Map<string, Answers>()
  for (const [path, operations] of Object.entries(paths)) {
    for (const [name, { responses }] of Object.entries(operations)) {
      const seen = await sendAll({
        template: `${server.url}${path}`,
        method: name.toUpperCase(),
        cookie,
        unknown: `${UNKNOWN}${String(answers.size).padStart(2, '0')}`,
      })
      answers.set(`${name} ${path}`, { told: new Set(Object.keys(responses)), seen })
    }
  }
  return answers
}

test('what probes get from each operation is in it, and what is in it can be got', async () => {
  const trusting = await probeServer({})
  const strict = await probeServer({ FLASHER_PXE_TOKENS: 'require' })
  const none: ReadonlySet<string> = new Set()
  const wrong = [...trusting].flatMap(([name, { told, seen }]) => {
    const both = seen.union(strict.get(name)?.seen ?? none)
    // Failures of the server itself are its `default`.
    const untold = [...both].filter((status) => !told.has(status) && status < '500')
    const unseen = PROVOKED.filter((status) => told.has(status) && !both.has(status))
    return [
      ...untold.map((status) => `${name} answers ${status}`),
      ...unseen
        // A session has every scope, and a safe request may come from anywhere.
        .filter((status) => status !== '403' || !name.startsWith('get '))
        .map((status) => `${name} never answers ${status}`),
    ]
  })
  assert.equal(wrong, [])
})

test.run()
