/** Chooses the driver of a machine by its way. */
import type { Shell } from '../../kit/host/shell.ts'
import { refuse } from '../../kit/foundation/result.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import type { PowerDriver } from './driver.ts'
import { createHookDriver } from './hook-driver.ts'
import { createIpmiDriver } from './ipmi-driver.ts'
import type { FindAddress } from './address-check.ts'
import { createRedfishDriver } from './redfish-driver.ts'
import type { Bmc, LearnedBmc } from './rules/bmc.ts'
import type { FoundCredential } from './rules/power-book.ts'
import { refuseForLabel } from './rules/reach.ts'
import { createWakeDriver } from './wake-driver.ts'

export interface DriverDependencies {
  readonly shell: Pick<Shell, 'run' | 'has'>
  readonly findAddress: FindAddress
  /** Milliseconds for one request. */
  readonly timeoutMs: number
}

export interface PowerSubject {
  readonly mac: Mac
  readonly bmc: Bmc
  readonly found: FoundCredential | null
  learned(): LearnedBmc
  learn(change: Partial<LearnedBmc>): Promise<void>
}

export function createDriver(
  { mac, bmc, found, learned, learn }: PowerSubject,
  { shell, findAddress: findAny, timeoutMs }: DriverDependencies,
): PowerDriver {
  const credential = found?.credential ?? null
  const findAddress = found === null ? findAny : limitAddresses(findAny, found)
  const http = {
    findAddress,
    timeoutMs,
    certificate: () => learned().certificate,
    pin: (certificate: string) => learn({ certificate }),
  }
  switch (bmc.way) {
    case 'redfish':
      return createRedfishDriver(bmc, credential, http)
    case 'ipmi':
      return createIpmiDriver(bmc, credential, {
        shell,
        findAddress,
        timeoutMs,
        suite: () => learned().suite,
        keepSuite: (suite) => learn({ suite }),
      })
    case 'wake-on-lan':
      // It sends no password.
      return createWakeDriver(bmc, mac, findAny)
    case 'hook':
      return createHookDriver(bmc, { mac, credential }, http)
  }
}

/** Checks the address that will be connected to, before a byte is sent there. */
const limitAddresses =
  (findAddress: FindAddress, { label, addresses }: FoundCredential): FindAddress =>
  async (to) => {
    const found = await findAddress(to)
    if (!found.ok || addresses === null) return found
    const trouble = refuseForLabel(found.value, { label, addresses })
    return trouble === null ? found : refuse(trouble)
  }
