/** How the disk of each machine of a rack is called. */
export const PLACE = 'pci-0000:00:05.0'
