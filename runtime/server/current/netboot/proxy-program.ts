/** Current line: `flasher-web-proxy`, which runs as root, and follows a wish of flasher-web whose every field it checks. */
import { runProxyDaemon } from '#fleet/proxy/proxy-daemon.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { printable } from '#kit/foundation/printable.ts'
import { createShell } from '#kit/host/shell.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import { runProgram, type RunCommand } from '#kit/terminal/command/program.ts'
import {
  type Command,
  type CommandLine,
  createTextCommands,
  SUCCESS,
} from '#kit/terminal/command/rules/command.ts'

const folder = (name: string, help: string) =>
  ({ name, value: { name: 'FOLDER', completes: 'folder' }, required: true, help }) as const

const RUN = {
  words: ['run'],
  summary: 'answer network boots while flasher-web wishes it',
  about: [
    'Runs a dnsmasq of its own, which answers PXE and UEFI HTTP Boot clients and assigns no addresses. Other programs of this host are left as they are.',
  ],
  positionals: [],
  flags: [
    folder(
      'wish',
      'where flasher-web leaves its wish: <state_dir>/proxy, or the RuntimeDirectory of its unit',
    ),
    folder('folder', "for its files: root's alone, new or empty, and removed at the end"),
    { name: 'until-off', value: null, help: 'end once nothing is wished' },
    { name: 'with-parent', value: null, help: 'end once standard input is closed' },
  ],
  examples: [
    {
      line: 'flasher-web-proxy run --wish /run/flasher-web --folder /run/flasher-proxy',
      does: 'what the unit flasher-proxy.service runs',
    },
  ],
} as const satisfies Command

const TEXTS = createTextCommands('flasher-web-proxy', [])

const LINE: CommandLine = {
  program: 'flasher-web-proxy',
  summary: 'answers network boots beside a DHCP server, for flasher-web',
  about: ['The units of the packages and pnpm start --proxy run it. It requires root.'],
  commands: [RUN, TEXTS.completion, TEXTS.manual],
  exitCodes: [
    ['0', 'success'],
    ['1', 'failure: not root, or a tool is missing'],
    ['2', 'misuse: wrong arguments'],
  ],
  environment: [],
  files: [],
  revised: '2026-11-30',
}

type ProxyEnvironment = Pick<
  ProcessEnvironment,
  'argv' | 'env' | 'stdin' | 'stdout' | 'stderr' | 'isRoot' | 'signal'
>

const run: RunCommand<ProxyEnvironment> = async (environment, { values, switches }) => {
  const { isRoot, stdin, stdout, stderr, signal } = environment
  if (!isRoot) throw new Fault('root-required', 'only root can answer DHCP')
  const [wishFolder = '', own = ''] = [values['wish'], values['folder']]
  if (!wishFolder.startsWith('/') || !own.startsWith('/'))
    throw new Fault('input-invalid', 'both folders must be absolute paths')
  const parentLeft = new AbortController()
  if (switches.has('with-parent')) {
    stdin.on('end', () => parentLeft.abort())
    stdin.on('close', () => parentLeft.abort())
    stdin.resume()
  }
  stdout.write('ready\n')
  await runProxyDaemon({
    wishFolder,
    folder: own,
    untilOff: switches.has('until-off'),
    // Tools come from the system's path, not the caller's.
    shell: createShell({ env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' } }),
    signal: AbortSignal.any([signal, parentLeft.signal]),
    say: (words) => stderr.write(`flasher-web-proxy: ${printable(words)}\n`),
  })
  return SUCCESS
}

export const proxyProgram = (environment: ProxyEnvironment): Promise<number> =>
  runProgram({ line: LINE, commands: { run: async () => run } }, environment)
