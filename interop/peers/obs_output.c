#include <srt/srt.h>
int main(void){return 0;}
