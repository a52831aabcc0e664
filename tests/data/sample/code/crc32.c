/* CRC-32 with the reflected polynomial 0xEDB88320, a byte at a time. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static uint32_t table[256];

static void fill_table(void) {
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;
		for (int k = 0; k < 8; k++)
			c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
		table[i] = c;
	}
}

uint32_t crc32(const void *data, size_t size) {
	const unsigned char *p = data;
	uint32_t c = 0xFFFFFFFFu;
	while (size--)
		c = table[(c ^ *p++) & 0xFF] ^ (c >> 8);
	return c ^ 0xFFFFFFFFu;
}

int main(void) {
	fill_table();
	printf("%08x\n", (unsigned)crc32("123456789", 9)); /* cbf43926 */
	return 0;
}
