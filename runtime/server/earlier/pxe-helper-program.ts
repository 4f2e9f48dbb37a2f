/** Earlier line: `flasher-web-activate-pxe`, which runs as root and trusts nothing that it is given. */
import { describeRefusal, planActivation } from '#fleet/boot/rules/dhcp.ts'
import { SUCCESS } from '#kit/terminal/command/rules/command.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { printable } from '#kit/foundation/printable.ts'
import { activateProxy, deactivateProxy } from '#fleet/boot/dnsmasq-proxy.ts'
import { listLanAddresses } from '#fleet/boot/pxe-helper.ts'
import { createShell } from '#kit/host/shell.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import { runProgram, type RunCommand } from '#kit/terminal/command/program.ts'
import { PXE_HELPER_LINE, type PxeHelperCommandName } from './rules/server-commands.ts'

type HelperEnvironment = Pick<ProcessEnvironment, 'argv' | 'env' | 'stdout' | 'stderr' | 'isRoot'>

/** Tools come from the system's path, not the caller's. */
const shell = createShell({ env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' } })

const activate: RunCommand<HelperEnvironment> = async ({ stdout, isRoot }, given) => {
  requireRoot(isRoot)
  const [device = '', subnet = '', port = ''] = given.positionals
  const loader = given.switches.has('secure-boot') ? 'grub' : 'ipxe'
  const planned = planActivation({ device, subnet, port, loader }, listLanAddresses())
  if (!planned.ok) {
    const words = printable(`${device} ${subnet} ${port}`)
    throw new Fault('input-invalid', `${words}: ${describeRefusal(planned.refusal)}`)
  }
  await activateProxy(shell, planned.value)
  const { network, prefix } = planned.value.target
  stdout.write(`PXE is active on ${device}, ${network}/${prefix}\n`)
  return SUCCESS
}

const deactivate: RunCommand<HelperEnvironment> = async ({ stdout, isRoot }) => {
  requireRoot(isRoot)
  const wasActive = await deactivateProxy(shell)
  stdout.write(wasActive ? 'PXE is no longer active\n' : 'PXE was not active\n')
  return SUCCESS
}

function requireRoot(isRoot: boolean): void {
  if (!isRoot) throw new Fault('root-required', 'only root can change dnsmasq')
}

const COMMANDS: Readonly<
  Record<PxeHelperCommandName, () => Promise<RunCommand<HelperEnvironment>>>
> = {
  activate: async () => activate,
  deactivate: async () => deactivate,
}

export const pxeHelper = (environment: HelperEnvironment): Promise<number> =>
  runProgram({ line: PXE_HELPER_LINE, commands: COMMANDS }, environment)
