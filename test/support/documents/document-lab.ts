/** A server with a cache, an image, a BMC and a machine, and one shell in which the blocks of a page run one after the other. */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { zstdCompressSync } from 'node:zlib'
import { BMC_USER, startRedfish } from '../power/redfish-fake.ts'
import { createServerHome, passwordIn } from '../server/flasher-web.ts'
import { startCache } from '../server/image-cache.ts'
import { bodyOf } from '../server/runs.ts'
import { waitUntil } from '../waiting.ts'

const FENCE = /^(?: *<!-- run: ([^\n]+) -->\n\n?)( *)```\w*\n([^]*?)^ *```$/gm

/** Lists the texts of those blocks of a page that `test` runs, in their order. */
const listRunFences = (page: string, test: string): readonly string[] =>
  [...page.matchAll(FENCE)].filter(([, by]) => by === test).map(([, , , text = '']) => text)

/** What the pages' machine reports of itself. */
const DISKS = [
  {
    path: '/dev/nvme0n1',
    size: '465.8G',
    size_bytes: 500_107_862_016,
    model: 'Samsung SSD',
    serial: 'S5GXNX0T123456',
    tran: 'nvme',
  },
  { path: '/dev/sda', size: '8G', size_bytes: 8 * 2 ** 30, serial: 'S4EWNX0N123456', tran: 'sata' },
]
const IMAGE = 'debian-13.img.zst'
const SMALL_IMAGE = zstdCompressSync(Buffer.alloc(2 ** 20))
export const MAC = 'aa:bb:cc:dd:ee:01'

export interface RanBlock {
  /** The exit code of the block's last command. */
  readonly code: number
  readonly out: string
  /** One line for each request: `200 GET /machines`. */
  readonly requests: readonly string[]
  readonly err: string
}

/** Opens the lab; all of it ends with the scope. */
export async function openDocumentLab() {
  const stack = new AsyncDisposableStack()
  const home = stack.use(await createServerHome())
  await mkdir(home.at('state/cache'), { recursive: true })
  await writeFile(home.at(`state/cache/${IMAGE}`), SMALL_IMAGE)
  const cache = stack.use(await startCache(home.at('state')))
  const bmc = stack.use(await startRedfish())
  const server = stack.use(
    await home.start([], {
      FLASHER_WITHCACHE_URL: cache.base,
      FLASHER_POWER_NETWORKS: '127.0.0.0/8,10.20.0.0/16',
    }),
  )
  // Both have one state folder, and whoever came first made the password.
  const shell = stack.use(
    openShell(home.dir, { PASSWORD: passwordIn(cache.said()), mac: MAC, FLASHER_TOKEN: '' }),
  )
  /** The addresses of the pages are those of the lab. */
  const here = (text: string) =>
    text
      .replaceAll('http://127.0.0.1:8080', server.url)
      .replaceAll('http://127.0.0.1:8081', cache.base)
      .replaceAll('sudo cat /var/lib/flasher', `cat ${home.at('state')}`)
      .replaceAll('"address": "10.20.0.11"', `"address": "${bmc.address}"`)
      .replaceAll('10.20.0.11', bmc.address)
      .replaceAll('"password": "…"', `"password": "${BMC_USER.password}"`)
  const post = (path: string, body: object) =>
    fetch(`${server.url}/pxe/${MAC}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  return {
    home,
    cache,
    server,
    post,
    /** Runs a text of a page. */
    run: (text: string): Promise<RanBlock> => shell.run(here(text)),
    /** A machine reports its disks and its hardware. */
    async discover() {
      await fetch(`${server.url}/pxe/${MAC}`)
      await post('/inventory', { disks: DISKS, lshw: { id: 'machine', class: 'system' } })
    },
    /** The machine boots until it has the plan of a flash, and reports that it is done. */
    async flash(run = '3f2c1e9a-0001') {
      await waitUntil(
        async () => {
          const answer = await fetch(`${server.url}/pxe/${MAC}/plan`)
          const plan: unknown = await answer.json()
          return JSON.stringify(plan).includes('"flash"')
        },
        () => 'the machine is not to be flashed',
        30_000,
      )
      await post('/progress', bodyOf({ run, phase: 'started' }))
      await fetch(`${server.url}/pxe/${MAC}/log?run=${run}`, { method: 'POST', body: 'a log\n' })
      await post('/progress', bodyOf({ run, phase: 'done' }))
      await post('/done', {})
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

export type DocumentLab = Awaited<ReturnType<typeof openDocumentLab>>

/** The blocks of a page that its comments say `test` runs, in their order. */
export const blocksRunBy = (test: string, page: string): readonly string[] =>
  listRunFences(readFileSync(`docs/${page}`, 'utf8'), test)

/** The shell names each request on standard error, whatever its block does with the answer. */
const PRELUDE = `curl() { command curl -w '%{stderr}\\n@@ %{http_code} %{method} %{url_effective}\\n' "$@"; }\n`
const END = '@@ended'

function openShell(cwd: string, env: Readonly<Record<string, string>>) {
  const child = spawn('bash', ['--norc', '-s'], {
    cwd,
    env: { ...process.env, ...env, http_proxy: '', HTTP_PROXY: '' },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const said = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => void (said.out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => void (said.err += text))
  child.stdin.write(PRELUDE)
  return {
    async run(text: string): Promise<RanBlock> {
      said.out = ''
      said.err = ''
      const end = `ended=$?; printf '\\n${END} %s\\n' $ended; printf '\\n${END}\\n' >&2`
      child.stdin.write(`{\n${text}\n} </dev/null\n${end}\n`)
      await waitUntil(
        async () => said.out.includes(END) && said.err.includes(END),
        () => `a block did not end: ${text}\n${said.err}`,
        30_000,
      )
      const [out = '', code = ''] = said.out.split(`\n${END} `)
      const requests = [...said.err.matchAll(/^@@ (\d+) (\w+) https?:\/\/[^/]+(\S*)$/gm)]
      return {
        code: Number(code),
        out,
        err: said.err,
        requests: requests.map(([, status, method, path]) => `${status} ${method} ${path}`),
      }
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      child.kill()
    },
  }
}
