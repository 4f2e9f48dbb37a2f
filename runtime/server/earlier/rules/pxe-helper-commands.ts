/** Earlier line: the command table of `flasher-web-activate-pxe`. */
import type { Command, CommandLine } from '#kit/terminal/command/rules/command.ts'
import { createTextCommands } from '#kit/terminal/command/rules/text-commands.ts'

const ACTIVATE = {
  words: ['activate'],
  summary: 'have dnsmasq answer network boots on one interface',
  about: [
    'Writes /etc/dnsmasq.d/flasher-pxe-active.conf, has dnsmasq test it, and restarts dnsmasq. If that fails, the file of before is put back.',
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

const TEXTS = createTextCommands('flasher-web-activate-pxe', [])

export type PxeHelperCommandName = 'activate' | 'deactivate'

export const PXE_HELPER_LINE: CommandLine = {
  program: 'flasher-web-activate-pxe',
  summary: 'the privileged helper of flasher-web for PXE proxy-DHCP',
  about: ['flasher-web runs it by sudo; it checks everything that it is given. It needs root.'],
  commands: [ACTIVATE, DEACTIVATE, TEXTS.completion, TEXTS.manual],
  exitCodes: [
    ['0', 'success'],
    ['1', 'failure: it is not run as root, or dnsmasq refused; nothing has changed'],
    ['2', 'misuse: wrong arguments, interface, subnet or port'],
  ],
  environment: [],
  files: [['/etc/dnsmasq.d/flasher-pxe-active.conf', 'the activation; absent: there is none']],
  revised: '2026-11-22',
}
