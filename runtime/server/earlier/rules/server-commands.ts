/** Earlier line: the command table of its `flasher-web`. */
import {
  type Command,
  type CommandLine,
  SERVER_ENVIRONMENT,
  SOURCE_ENVIRONMENT,
  createTextCommands,
  CONFIG,
  CONFIG_FILES,
  listExitCodes,
} from '#kit/terminal/command/rules/command.ts'
import { DEFAULT_IMAGE_ROOT } from '#appliance/disk-images.ts'

const SERVE = {
  words: ['serve'],
  summary: 'run the server (the default command)',
  about: [
    'Serves boot scripts, boot files, images, the web pages and the API of the earlier release line until SIGTERM or SIGINT. SIGHUP reloads the configuration.',
  ],
  positionals: [],
  flags: [CONFIG],
  examples: [{ line: 'FLASHER_LINE=earlier flasher-web', does: 'serve /var/lib/flasher/images' }],
} as const satisfies Command

const TEXTS = createTextCommands('flasher-web', [CONFIG])

export type ServerCommandName = 'serve'

export const SERVER_LINE: CommandLine = {
  program: 'flasher-web',
  summary: 'the machine server of the earlier release line',
  about: ['Boots machines over the network and flashes images from a folder of this host.'],
  commands: [SERVE, TEXTS.completion, TEXTS.manual],
  exitCodes: listExitCodes('server'),
  environment: [
    ['FLASHER_IMAGE_ROOT', `the image folder (default: ${DEFAULT_IMAGE_ROOT})`],
    ['FLASHER_STATE_DIR', 'the folder of state.db (default: /var/lib/flasher)'],
    ['FLASHER_BOOT_DIR', 'the files of the live system (default: <state_dir>/boot)'],
    ['FLASHER_WEB_HOST, FLASHER_WEB_PORT', 'where to listen (default: 0.0.0.0 and 8080)'],
    ['FLASHER_BOOT_RELEASE_REPO', 'owner/name of the repository whose releases are fetched'],
    ['FLASHER_RELEASES_BASE_URL', 'the site that hosts those releases'],
    ['FLASHER_WORKFLOW_PROGRAM', 'what runs the workflows of cijoe-online (default: cijoe)'],
    ...SERVER_ENVIRONMENT,
    ...SOURCE_ENVIRONMENT,
  ],
  files: [...CONFIG_FILES, ['<state_dir>/state.db', 'machines and events']],
  revised: '2026-11-22',
}

const ACTIVATE = {
  words: ['activate'],
  summary: 'let dnsmasq answer network boots on one interface',
  about: [
    'Writes /etc/dnsmasq.d/flasher-pxe-active.conf, has dnsmasq test it, and restarts dnsmasq. If that fails, the previous file is restored.',
  ],
  positionals: [
    { value: { name: 'INTERFACE', completes: 'nothing' }, help: 'an interface of this host' },
    {
      value: { name: 'SUBNET', completes: 'nothing' },
      help: 'a subnet that it has: a.b.c.d or a.b.c.d/nn',
    },
    { value: { name: 'PORT', completes: 'nothing' }, help: 'where flasher-web listens' },
  ],
  flags: [
    {
      name: 'secure-boot',
      value: null,
      help: 'UEFI machines load the signed shim and GRUB instead of iPXE',
    },
  ],
  examples: [
    {
      line: 'flasher-web-activate-pxe activate eth0 192.0.2.0/24 8080',
      does: 'boot the machines of that network from this host',
    },
  ],
} as const satisfies Command

const DEACTIVATE = {
  words: ['deactivate'],
  summary: 'undo the activation',
  about: ['Removes /etc/dnsmasq.d/flasher-pxe-active.conf and restarts dnsmasq.'],
  positionals: [],
  flags: [],
  examples: [{ line: 'flasher-web-activate-pxe deactivate', does: 'answer no network boots' }],
} as const satisfies Command

const HELPER_TEXTS = createTextCommands('flasher-web-activate-pxe', [])

export type PxeHelperCommandName = 'activate' | 'deactivate'

export const PXE_HELPER_LINE: CommandLine = {
  program: 'flasher-web-activate-pxe',
  summary: 'the privileged helper of flasher-web for PXE proxy-DHCP',
  about: ['flasher-web runs it by sudo; it validates its arguments. It requires root.'],
  commands: [ACTIVATE, DEACTIVATE, HELPER_TEXTS.completion, HELPER_TEXTS.manual],
  exitCodes: [
    ['0', 'success'],
    ['1', 'failure: not root, or dnsmasq refused; nothing was changed'],
    ['2', 'misuse: wrong arguments, interface, subnet or port'],
  ],
  environment: [],
  files: [['/etc/dnsmasq.d/flasher-pxe-active.conf', 'the activation; absent: there is none']],
  revised: '2026-11-22',
}
