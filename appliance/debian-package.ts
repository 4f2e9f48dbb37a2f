/** All programs with their units, for a Debian system. */
import type { Appliance } from './appliance.ts'

export const debianPackage: Appliance = {
  name: 'deb',
  says: 'all programs with their units, as a Debian package',
  shape: 'deb',
  archs: ['x86_64'],
}
