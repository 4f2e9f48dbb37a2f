/** The machines as somebody sees them who sees some: the others are not there. */
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { Machines } from './machines.ts'

/** Methods that change machines are passed through. */
export function createSeenMachines<M extends MachineBase>(
  machines: Machines<M>,
  sees: (machine: M) => boolean,
): Machines<M> {
  const only = (machine: M | null): M | null => (machine !== null && sees(machine) ? machine : null)
  let [all, seen]: [readonly M[], readonly M[]] = [[], []]
  /** The same array while nothing changed, as for the whole list. */
  const peekAll = (): readonly M[] => {
    const present = machines.peekAll()
    if (present !== all) [all, seen] = [present, present.filter(sees)]
    return seen
  }
  const peek = (mac: Mac) => only(machines.peek(mac))
  return {
    ...machines,
    peek,
    peekAll,
    find: async (mac) => peek(mac),
    newest: (mac) => only(machines.newest(mac)),
    list: async () => peekAll(),
    count: async () => peekAll().length,
    findHardware: async (mac) => (peek(mac) === null ? null : await machines.findHardware(mac)),
  }
}
