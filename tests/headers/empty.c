/* SPDX-License-Identifier: MIT
 *
 * Compiled with one public header before it, in C and in C++, and nothing else.
 */
int syncpoint_header_test_is_not_empty;
